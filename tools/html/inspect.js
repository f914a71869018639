// Shows the JSON of `headrace inspect`: the steps of the program that runs first.
'use strict';

{
  const {programs} = JSON.parse(document.getElementById('data').textContent);
  const program = programs.find(({region}) => region === null);
  const {graph} = program;
  const about = [`The program ${program.name}: ${headrace.count(program.steps.length, 'step')}, compiled for ` +
    `${program.cpu}, memory of a run ${headrace.bytes(program.arena_bytes)}. Weights are not drawn.`];
  headrace.page = new headrace.GraphPage(graph, [], {noun: 'step', about, boxes: false});
}
