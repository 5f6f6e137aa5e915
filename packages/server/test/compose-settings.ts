import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseEnv } from 'node:util'

const deploy = path.resolve(import.meta.dirname, '../../../deploy')

/** What deploy/secrets.sh makes, by default in a directory of its own, and the settings of compose.yaml's two files. */
export function composeSettings(directory = mkdtempSync(path.join(tmpdir(), 'purser-secrets-'))) {
  // The key belongs to the user of the image, which only root may arrange. The rest is made before.
  const isRoot = process.getuid?.() === 0
  try {
    execFileSync('sh', [path.join(deploy, 'secrets.sh'), directory], { stdio: 'pipe' })
  } catch (error) {
    if (isRoot) throw error
  }
  const settings = (file: string) => parseEnv(readFileSync(file, 'utf8')) as Record<string, string>
  return {
    directory,
    files: readdirSync(directory),
    env: { ...settings(path.join(deploy, 'purser.env.example')), ...settings(path.join(directory, 'service.env')) },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}
