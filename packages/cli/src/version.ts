import { existsSync, readFileSync } from 'node:fs'

/**
 * Returns the version of the package of a program, from its manifest: one folder up in the source tree, beside the compiled files in the published
 * package. `program` is the program's `import.meta.url`.
 */
export function versionOf(program: string): string {
  const beside = new URL('./package.json', program)
  const manifest = existsSync(beside) ? beside : new URL('../package.json', program)
  const read: unknown = JSON.parse(readFileSync(manifest, 'utf8'))
  const isManifest = typeof read === 'object' && read !== null && 'version' in read
  return isManifest ? String(read.version) : 'unknown'
}
