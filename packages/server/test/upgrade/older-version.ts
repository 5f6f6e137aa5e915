import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Env, spawnService } from '../crash/service.ts'
import type { Version } from '../crash/stage.ts'

const root = path.resolve(import.meta.dirname, '../../../..')

/** An earlier version, whose sources are in a folder of its own. */
export interface OlderVersion extends Version {
  /** The newest migration that it has. */
  readonly newestMigration: string
  remove(): void
}

/** Whether git has this commit here. It has not in a shallow clone, in a copy without `.git`, and where git is not installed. */
export function isInHistory(commit: string): boolean {
  return spawnSync('git', ['-C', root, 'cat-file', '-e', `${commit}^{commit}`], { stdio: 'ignore' }).status === 0
}

/**
 * Takes the sources of a commit out of the history. They use the installed dependencies of the present version, and their own packages of this
 * workspace. A commit that needs other dependencies does not start.
 */
export function takeOlderVersion(commit: string): OlderVersion {
  const place = mkdtempSync(path.join(tmpdir(), 'purser-older-'))
  const archive = path.join(place, 'sources.tar')
  execFileSync('git', ['-C', root, 'archive', '--output', archive, commit])
  execFileSync('tar', ['-xf', archive, '-C', place])
  rmSync(archive)
  for (const folder of ['.', ...readdirSync(path.join(place, 'packages')).map((name) => `packages/${name}`)])
    linkDependencies(folder, place)
  const program = (name: string): string => path.join(place, 'packages/server/src', name)
  return {
    newestMigration: readdirSync(program('platform/db/migrations')).sort().at(-1) ?? '',
    admin: (args, env) => runCommand(program('admin/main.ts'), args, env),
    start: (env) => spawnService(env, [], program('main.ts')).up(),
    remove: () => rmSync(place, { recursive: true, force: true }),
  }
}

/**
 * Links each installed dependency of a folder, and the packages of the workspace to those of the version. A package that only the older version needs,
 * such as `@fastify/busboy`, is a development dependency.
 */
function linkDependencies(folder: string, place: string): void {
  const installed = path.join(root, folder, 'node_modules')
  if (!existsSync(installed)) return
  const own = path.join(place, folder, 'node_modules')
  mkdirSync(path.join(own, '@purser'), { recursive: true })
  for (const name of readdirSync(installed).filter((entry) => !/^(\.|@purser$)/.test(entry)))
    symlinkSync(path.join(installed, name), path.join(own, name))
  for (const name of readdirSync(path.join(place, 'packages')))
    symlinkSync(path.join(place, 'packages', name), path.join(own, '@purser', name))
}

/** Runs a command of `purser admin` in a process of its own. */
export function runCommand(program: string, args: readonly string[], env: Env): ReturnType<Version['admin']> {
  const { PATH = '', NODE_COMPILE_CACHE } = process.env
  return new Promise((resolve) => {
    const options = { env: { PATH, NODE_COMPILE_CACHE, ...env } }
    const child = execFile(process.execPath, [program, ...args], options, (_, stdout, stderr) =>
      resolve({ exitCode: child.exitCode ?? 1, stdout, stderr }),
    )
  })
}
