// Shows the JSON of `headrace inspect`: the steps of the program that runs first.
'use strict';

{
  const {programs} = JSON.parse(document.getElementById('data').textContent);
  const program = programs.find(({region}) => region === null);
  const {graph} = program;
  const about = [`The program ${program.name}: ${headrace.count(program.steps.length, 'step')}, compiled for ` +
    `${program.cpu}, memory of a run ${headrace.bytes(program.arena_bytes)}. Weights are not drawn.`];
  const fallen = graph.nodes.filter(({fallback}) => fallback !== null).length;
  if (fallen > 0) {
    about.push(`The times of ${headrace.count(fallen, 'region')} are those of native code, which ran instead: click a ` +
      'region to see why.');
  }
  headrace.page = new headrace.GraphPage(graph, [], {noun: 'step', about, boxes: false});
}
