import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

const root = import.meta.dirname
/** The dashboard is built into the server's package. */
const published = ['protocol', 'sdk', 'cli', 'mcp', 'server', 'dashboard']

/** Licences that may be shipped with an Apache-2.0 service: permissive, no duty to publish source. All else is refused. */
const permissive = [
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  // Of the dashboard's fonts: no duty on what they are bundled with.
  'OFL-1.1',
  'Unlicense',
]

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license?: unknown
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

/** Every run-time dependency of a published package, including itself, by directory. */
function shipped(): ReadonlyMap<string, Manifest> {
  const found = new Map<string, Manifest>()
  const waiting = [...published.map((name) => path.join(root, 'packages', name)), ...builtIn()]
  for (const directory of waiting) {
    if (found.has(directory)) continue
    const manifest: Manifest = JSON.parse(readFileSync(path.join(directory, 'package.json'), 'utf8'))
    found.set(directory, manifest)
    for (const [name, needed] of dependenciesOf(manifest)) {
      const place = locate(name, directory)
      if (place !== undefined) waiting.push(place)
      else if (needed) throw new Error(`${name}, which ${manifest.name} needs, is not installed: run npm ci`)
    }
  }
  return found
}

/** The files that a build copies into the server's package out of a development dependency: the script of the API reference. */
function builtIn(): readonly string[] {
  const scalar = locate('@scalar/fastify-api-reference', path.join(root, 'packages', 'reference'))
  if (scalar === undefined) throw new Error('@scalar/fastify-api-reference is not installed: run npm ci')
  return [scalar]
}

/** Names, and whether the package cannot do without. Peers that are optional are the consumer's own choice. */
function dependenciesOf(manifest: Manifest): ReadonlyMap<string, boolean> {
  const { dependencies = {}, optionalDependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = manifest
  const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true)
  const needed = [...Object.keys(dependencies), ...peers].map((name): [string, boolean] => [name, true])
  const optional = Object.keys(optionalDependencies).map((name): [string, boolean] => [name, false])
  return new Map([...needed, ...optional])
}

/** Returns the directory in which Node finds the package, seen from a directory; undefined if there is none. */
function locate(name: string, from: string): string | undefined {
  const workspace = published.find((candidate) => name === `@purser/${candidate}`)
  if (workspace !== undefined) return path.join(root, 'packages', workspace)
  for (let place = from; place.startsWith(root); place = path.dirname(place)) {
    const directory = path.join(place, 'node_modules', name)
    if (existsSync(path.join(directory, 'package.json'))) return directory
  }
  return undefined
}

/** Of alternatives one must be permissive; of licences that hold together, each. What is nested is for a person to judge. */
function isPermissive(license: unknown): boolean {
  if (typeof license !== 'string') return false
  const choices = license.replace(/^\(([^()]*)\)$/, '$1').split(/ or /i)
  return choices.some((choice) => choice.split(' AND ').every((one) => permissive.includes(one)))
}

const lines = [...shipped().values()].map(({ name, version, license }) => ({
  line: `${name} ${version}: ${typeof license === 'string' ? license : 'no licence named'}`,
  good: isPermissive(license),
}))
const refused = lines.filter(({ good }) => !good)
if (process.argv.includes('--list'))
  console.log(
    lines
      .map(({ line }) => line)
      .sort()
      .join('\n'),
  )
if (refused.length > 0) console.error(`Not permissive:\n${refused.map(({ line }) => `  ${line}`).join('\n')}`)
else console.log(`${lines.length} packages at run time, all under permissive licences`)
process.exitCode = refused.length > 0 ? 1 : 0
