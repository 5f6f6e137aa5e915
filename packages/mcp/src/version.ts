import { existsSync, readFileSync } from 'node:fs'

/** The version of this package. Its manifest stands above the sources here, and beside what is compiled in what npm installs. */
export function version(): string {
  const beside = new URL('./package.json', import.meta.url)
  const manifest = existsSync(beside) ? beside : new URL('../package.json', import.meta.url)
  const read: unknown = JSON.parse(readFileSync(manifest, 'utf8'))
  const isManifest = typeof read === 'object' && read !== null && 'version' in read
  return isManifest ? String(read.version) : 'unknown'
}
