// Shows the JSON of `headrace explain`.
'use strict';

{
  const {graph, placement} = JSON.parse(document.getElementById('data').textContent);
  const about = [`${headrace.count(placement.length, 'op')}, ${headrace.count(graph.blocks.length, 'region')}; ` +
    'constants are not drawn.'];
  headrace.page = new headrace.GraphPage(graph, placement, {noun: 'op', about, boxes: true});
}
