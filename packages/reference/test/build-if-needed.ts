import { execFile } from 'node:child_process'
import { existsSync, globSync, statSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const root = path.join(import.meta.dirname, '..')

/** Builds the reference where there is no build, or one that is older than its sources. */
export async function buildIfNeeded(): Promise<void> {
  const built = path.join(root, 'dist', 'index.html')
  const sources = globSync(['src/*', '*.{json,ts}'], { cwd: root })
  const newest = Math.max(...sources.map((file) => statSync(path.join(root, file)).mtimeMs))
  if (existsSync(built) && statSync(built).mtimeMs >= newest) return
  await promisify(execFile)(process.execPath, [path.join(root, 'build.ts')])
}
