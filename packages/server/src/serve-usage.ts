import { readConfig } from './config.ts'
import { watchReads } from './settings.ts'

/**
 * The text of `purser serve --help`: the arguments, the settings without a default with how to set each, and the names of the others. It is made
 * from the reader of the configuration. A setting that only goes with another one, such as the bucket of a storage, is in the guide alone.
 *
 * @example
 * process.stdout.write(serveUsage(networks.map((network) => network.name)))
 */
export function serveUsage(networks: readonly string[]): string {
  const { env, names } = watchReads({})
  const read = readConfig(env, [], networks)
  const required = 'faults' in read ? read.faults : []
  const others = [...names].filter((name) => !required.some((one) => one.name === name)).sort()
  return [
    'Usage: purser serve [--role all|api|work]',
    '',
    'Runs the service: its API, its background work (--role work), or both (the default).',
    'The environment has its settings. These have no default:',
    ...required.flatMap(({ name, how }) => [`  ${name}`, `      ${how}`]),
    '',
    'These are optional:',
    ...others.map((name) => `  ${name}`),
    '',
    'docs/operations.md has the meaning and the default of each, and the settings that go with some of them.',
    '',
  ].join('\n')
}
