import { existsSync, readFileSync } from 'node:fs'

/** The version of this package, from its manifest: one folder up in the source tree, beside the compiled files in the published package. */
export function version(): string {
  const beside = new URL('./package.json', import.meta.url)
  const manifest = existsSync(beside) ? beside : new URL('../package.json', import.meta.url)
  const read: unknown = JSON.parse(readFileSync(manifest, 'utf8'))
  const isManifest = typeof read === 'object' && read !== null && 'version' in read
  return isManifest ? String(read.version) : 'unknown'
}
