import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const root = import.meta.dirname
const compressible = /\.(?:css|html|js|json|svg|txt)$/
/** Smaller files are not compressed: that would save no packet. */
const compressBytesMin = 1_024

/**
 * Builds the dashboard into `dist`, with each text file also compressed. The new build takes the place of the old one in one step, so
 * that a service that runs never serves half of one.
 */
async function buildDashboard(): Promise<void> {
  // Always builds for production, also when a test starts it: React's development build is 50 % larger.
  process.env.NODE_ENV = 'production'
  const { build } = await import('vite')
  const next = path.join(root, `dist.next-${process.pid}`)
  try {
    await build({ root, configFile: path.join(root, 'vite.config.ts'), logLevel: 'warn', build: { outDir: next } })
    compress(next)
    const old = path.join(root, `dist.old-${process.pid}`)
    if (existsSync(path.join(root, 'dist'))) renameSync(path.join(root, 'dist'), old)
    renameSync(next, path.join(root, 'dist'))
    rmSync(old, { recursive: true, force: true })
  } finally {
    rmSync(next, { recursive: true, force: true })
  }
}

function compress(directory: string): void {
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name)
    if (!entry.isFile() || !compressible.test(entry.name)) continue
    const bytes = readFileSync(file)
    if (bytes.length < compressBytesMin) continue
    writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 10 } }))
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
  }
}

/** After `npm ci`: an installation for production has no build tools, and takes the build that comes with the package. */
const isAfterInstall = process.argv.includes('--after-install')
const hasTools = await import('vite').then(
  () => true,
  () => false,
)
if (hasTools) {
  const began = performance.now()
  await buildDashboard()
  console.log(`packages/dashboard/dist (${((performance.now() - began) / 1_000).toFixed(1)} s)`)
} else if (!isAfterInstall) {
  console.error('The build tools are not installed. Run npm ci, with its development dependencies.')
  process.exitCode = 1
}
