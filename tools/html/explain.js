// Shows the JSON of `headrace explain`.
'use strict';

{
  const {graph, placement, cost} = JSON.parse(document.getElementById('data').textContent);
  const about = [`${headrace.count(placement.length, 'op')}, ${headrace.count(graph.blocks.length, 'region')}; ` +
    'constants are not drawn.'];
  if (cost !== null) {
    about.push(`The plan costs ${headrace.cost(cost.seconds)}, no plan less than ` +
      `${headrace.cost(cost.lower_bound)}; costs are ${cost.source}.`);
  }
  headrace.page = new headrace.GraphPage(graph, placement, {noun: 'op', about, boxes: true});
}
