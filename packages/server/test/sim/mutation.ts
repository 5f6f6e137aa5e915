import { globSync, readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** A change of the service's source that makes it faulty. */
export interface Mutation {
  /** Names the copy of the service with this mutation. */
  readonly name: string
  /** Below `packages/server/src`. */
  readonly file: string
  /** Occurs once in the file. */
  readonly find: string
  readonly replace: string
}

/** A fault, and the number of seeds from the first within which the simulator finds it. */
export interface Fault extends Mutation {
  readonly within: number
  /** The suite looks for it each time. */
  readonly isQuick?: boolean
  /** A seed that found it, and that is run first. */
  readonly foundBy?: number
  /** A test file that fails with this fault, for one that no seed finds. Below `packages/server`. */
  readonly testedBy?: string
}

const server = path.resolve(import.meta.dirname, '../..')
const mutations = new Map<string, { readonly mutation: Mutation; readonly copied: ReadonlySet<string> }>()

/**
 * Imports a module of this package from a copy of the package's code with the mutation. A copy has the modules that import the mutated one, directly or
 * through others; all other modules and the libraries are shared. Only for Node itself, which loads TypeScript unchanged; a bundler or test runner
 * would not use it.
 */
export function importMutated(specifier: string, mutation: Mutation): Promise<unknown> {
  mutations.set(mutation.name, { mutation, copied: importersOf(path.join(server, 'src', mutation.file)) })
  const url = new URL(specifier, import.meta.url)
  url.search = `?mutation=${mutation.name}`
  return import(url.href)
}

/** Starts resolving the copies. Call it once in a process. */
export function installMutations(): void {
  registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context)
      const name = new URL(context.parentURL ?? 'file:///').searchParams.get('mutation')
      if (name === null || !mutations.get(name)?.copied.has(resolved.url)) return resolved
      return { ...resolved, url: `${resolved.url}?mutation=${name}` }
    },
    load(url, context, next) {
      const mutation = mutations.get(new URL(url).searchParams.get('mutation') ?? '')?.mutation
      if (mutation === undefined || fileURLToPath(url.split('?')[0] ?? url) !== path.join(server, 'src', mutation.file))
        return next(url, context)
      return { format: 'module-typescript', shortCircuit: true, source: mutated(mutation) }
    },
  })
}

let importers: ReadonlyMap<string, readonly string[]> | undefined

/** The modules of this package that import each module, by their URLs. */
function findImporters(): ReadonlyMap<string, readonly string[]> {
  const pairs = globSync('{src,test}/**/*.ts', { cwd: server }).flatMap((name) => {
    const importer = pathToFileURL(path.join(server, name)).href
    const text = readFileSync(path.join(server, name), 'utf8')
    return [...text.matchAll(/\b(?:from|import) ?\(?'(\.[^']+)'/g)].map(([, specifier = '']) => ({
      imported: new URL(specifier, importer).href,
      importer,
    }))
  })
  const found = Map.groupBy(pairs, ({ imported }) => imported)
  return new Map([...found].map(([imported, of]) => [imported, of.map(({ importer }) => importer)]))
}

/** A module and all that import it, directly or through others. */
function importersOf(file: string): ReadonlySet<string> {
  importers ??= findImporters()
  const all = new Set([pathToFileURL(file).href])
  for (const imported of all) for (const importer of importers.get(imported) ?? []) all.add(importer)
  return all
}

/** Returns the mutated source. Throws if the source has changed so that the text to replace is not there exactly once. */
export function mutated({ name, file, find, replace }: Mutation): string {
  const source = readFileSync(path.join(server, 'src', file), 'utf8')
  const pieces = source.split(find)
  if (pieces.length !== 2)
    throw new Error(`${name}: its text occurs ${pieces.length - 1} times in ${file}, and not once`)
  return pieces.join(replace)
}
