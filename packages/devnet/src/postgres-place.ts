import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** The account that runs PostgreSQL, which refuses to run as root; undefined means the account of this process. */
export type RunAs = { uid: number; gid: number } | undefined

/**
 * The directories of a cluster: `base` contains it and what belongs to it (a copy of the binaries), `cluster` is its
 * PGDATA.
 */
export type Place = { base: string; cluster: string }

const nobody = 65534
const pointerName = 'cluster-location'

/** Root gives the cluster to the owner of the data directory, or to "nobody" when root owns that. */
export function chooseRunAs(dataDir: string): RunAs {
  if (process.getuid?.() !== 0) return undefined
  const owner = statSync(dataDir)
  return owner.uid === 0 ? { uid: nobody, gid: nobody } : { uid: owner.uid, gid: owner.gid }
}

/** Whether the account can reach `target`: it may enter every directory above it, with links resolved. */
export function isReachable(target: string, runAs: RunAs): boolean {
  if (runAs === undefined) return true
  const resolved = realpathSync(target)
  if (!mayRead(resolved, runAs)) return false
  return resolved === path.dirname(resolved) || isReachable(path.dirname(resolved), runAs)
}

function mayRead(target: string, { uid, gid }: { uid: number; gid: number }): boolean {
  const { mode, uid: owner, gid: group } = statSync(target)
  const shift = owner === uid ? 6 : group === gid ? 3 : 0
  const needed = statSync(target).isDirectory() ? 0o1 : 0o4
  return ((mode >> shift) & needed) === needed
}

/**
 * Returns the place of the cluster of a data directory, always the same one. Under a directory that only root may enter,
 * the server's account could not read its own files. The cluster is then elsewhere, and a pointer stays in the data
 * directory. The pointer names a fresh place: a data directory that was deleted and made again must not find the old
 * data.
 */
export function findPlace(dataDir: string, runAs: RunAs): Place {
  const pointer = path.join(dataDir, pointerName)
  if (existsSync(pointer)) return followPointer(pointer)
  if (runAs !== undefined) letPass(dataDir)
  if (isReachable(dataDir, runAs)) return { base: dataDir, cluster: path.join(dataDir, 'cluster') }
  const id = createHash('sha256').update(realpathSync(dataDir)).digest('hex').slice(0, 16)
  const base = makeReachableDirectory(runAs)
  const cluster = path.join(base, `${id}-${randomBytes(4).toString('hex')}`)
  mkdirSync(cluster)
  writeFileSync(pointer, `${cluster}\n`, { flush: true })
  return { base, cluster }
}

/**
 * A directory that contains nothing but our lock was made for us (mkdtemp closes it): others may pass through it, not
 * list it.
 */
function letPass(dataDir: string): void {
  const { uid, mode } = statSync(dataDir)
  const isOurs = uid === process.getuid?.() && readdirSync(dataDir).every((name) => name === 'lock')
  if (isOurs) chmodSync(dataDir, mode | 0o111)
}

function followPointer(pointer: string): Place {
  const cluster = readFileSync(pointer, 'utf8').trim()
  if (!existsSync(cluster)) {
    throw new Error(
      `The database of ${path.dirname(pointer)} was kept in ${cluster}, which is gone. To begin without its data, delete ${pointer}.`,
    )
  }
  return { base: path.dirname(cluster), cluster }
}

function makeReachableDirectory(runAs: RunAs): string {
  for (const base of ['/var/lib/purser', path.join(os.tmpdir(), 'purser'), '/tmp/purser']) {
    try {
      mkdirSync(base, { recursive: true })
      const found = lstatSync(base)
      if (!found.isDirectory() || found.uid !== process.getuid?.()) continue
      chmodSync(base, 0o755)
      if (isReachable(base, runAs)) return base
    } catch {}
  }
  throw new Error(
    'No directory for the database that an account other than root may enter: tried /var/lib/purser and /tmp/purser.',
  )
}
