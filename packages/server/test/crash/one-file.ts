import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { inject } from 'vitest'
import { waitUntil } from '../../../devnet/src/processes.ts'

const root = path.join(import.meta.dirname, '..', '..', '..', '..')
/** Always the same, so that the next run finds its compiled code. From here Node finds the native modules, too. */
const file = path.join(root, 'node_modules', '.cache', 'purser-service.mjs')
const buildMsMax = 120_000

let built: Promise<void> | undefined

/**
 * Returns the file with the waiting service (`gate.ts`) and all modules that it imports. A process loads it in a third of the time that
 * thousands of files take. It is built from the sources once in each run, by the worker that needs it first.
 */
export async function serviceInOneFile(): Promise<string> {
  built ??= buildOnce()
  await built
  return file
}

async function buildOnce(): Promise<void> {
  const done = path.join(inject('runDirectory'), 'service-built')
  try {
    mkdirSync(`${done}.begun`)
  } catch {
    if (await waitUntil(() => existsSync(done), buildMsMax)) return
    throw new Error('another worker did not build the service')
  }
  const half = `${file}.${process.pid}`
  await build({
    entryPoints: [path.join(import.meta.dirname, 'gate.ts')],
    outfile: half,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    keepNames: true,
    external: ['secp256k1', 'tiny-secp256k1'],
    plugins: [memoryKept, ownPlaces],
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url)",
    },
    logLevel: 'error',
  })
  renameSync(half, file)
  writeFileSync(done, '')
}

/**
 * `main.ts` releases no memory here: that is a collection of 50 to 100 ms after each start, and these processes live for seconds. Tests of memory run
 * the program without it.
 */
const memoryKept: Plugin = {
  name: 'memory-kept',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\/platform\/memory\.ts$/ }, ({ importer, path: name }) =>
      importer.endsWith('/src/main.ts') ? { path: name, namespace: 'memory-kept' } : undefined,
    )
    onLoad({ filter: /./, namespace: 'memory-kept' }, () => ({
      contents: 'export function releaseStartMemory() {}\nexport function releaseMemoryWhenIdle() {}',
    }))
  },
}

/** A module that reads a file beside itself finds it where its source is. */
const ownPlaces: Plugin = {
  name: 'own-places',
  setup({ onLoad }) {
    onLoad({ filter: /packages\/.*\.ts$/ }, (found) => {
      const text = readFileSync(found.path, 'utf8')
      const places = { dirname: path.dirname(found.path), filename: found.path, url: pathToFileURL(found.path).href }
      const placed = text.replace(/\bimport\.meta\.(dirname|filename|url)\b/g, (_, name: keyof typeof places) =>
        JSON.stringify(places[name]),
      )
      return { contents: placed, loader: 'ts' }
    })
  },
}
