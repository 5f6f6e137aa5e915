import { hash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const root = import.meta.dirname
const source = (name: string): string => readFileSync(path.join(root, 'src', name), 'utf8')

/**
 * Builds the API reference into `dist`: the page, its script and style, and Scalar, which comes out of its Fastify plugin. Scripts and style
 * are there compressed alone, under names with their digest: the service streams them as they are. The new build takes the place of the old
 * one in one step.
 */
async function buildReference(): Promise<void> {
  const next = path.join(root, `dist.next-${process.pid}`)
  const old = path.join(root, `dist.old-${process.pid}`)
  const dist = path.join(root, 'dist')
  try {
    mkdirSync(path.join(next, 'assets'), { recursive: true })
    const assets = new Map([...(await ownAssets()), ['scalar.js', await scalarScript()]])
    let page = source('index.html')
    for (const [name, bytes] of assets) {
      const hashed = name.replace('.', `-${hash('sha256', bytes, 'hex').slice(0, 12)}.`)
      page = page.replace(`assets/${name}`, `assets/${hashed}`)
      compress(path.join(next, 'assets', hashed), bytes)
    }
    writeFileSync(path.join(next, 'index.html'), page)
    writeFileSync(path.join(next, 'scalar-LICENSE.txt'), readFileSync(path.join(scalarDirectory(), 'LICENSE')))
    if (existsSync(dist)) renameSync(dist, old)
    renameSync(next, dist)
  } finally {
    for (const left of [next, old]) rmSync(left, { recursive: true, force: true })
  }
}

async function ownAssets(): Promise<ReadonlyMap<string, Uint8Array>> {
  const { build } = await import('esbuild')
  const { outputFiles } = await build({
    entryPoints: ['start.ts', 'theme.css'].map((name) => path.join(root, 'src', name)),
    ...{ bundle: true, minify: true, format: 'iife', target: 'es2022', outdir: root, write: false },
  })
  return new Map(outputFiles.map((file) => [path.basename(file.path), file.contents]))
}

/** The script that Scalar's plugin would serve: the only form in which its package has one without hundreds of dependencies. */
async function scalarScript(): Promise<Uint8Array> {
  const [{ fastify }, { default: reference }] = await Promise.all([
    import('fastify'),
    import('@scalar/fastify-api-reference'),
  ])
  const app = fastify()
  await app.register(reference, { routePrefix: '/reference', configuration: { url: '/openapi.json' } })
  const answer = await app.inject('/reference/js/scalar.js')
  await app.close()
  if (answer.statusCode !== 200 || !answer.body.includes('createApiReference'))
    throw new Error('@scalar/fastify-api-reference serves no script any more')
  return answer.rawPayload
}

function scalarDirectory(): string {
  return path.join(path.dirname(fileURLToPath(import.meta.resolve('@scalar/fastify-api-reference'))), '..')
}

/** Brotli at 9 takes 3 seconds and at 10 takes 28, for a file that is 8 % smaller. */
function compress(file: string, bytes: Uint8Array): void {
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }))
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
}

/** After `npm ci`: an installation for production has no build tools, and takes the build that comes with the package. */
const isAfterInstall = process.argv.includes('--after-install')
const hasTools = await import('@scalar/fastify-api-reference').then(
  () => true,
  () => false,
)
if (hasTools) {
  const began = performance.now()
  await buildReference()
  console.log(`packages/reference/dist (${((performance.now() - began) / 1_000).toFixed(1)} s)`)
} else if (!isAfterInstall) {
  console.error('The build tools are not installed. Run npm ci, with its development dependencies.')
  process.exitCode = 1
}
