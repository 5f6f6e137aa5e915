import { existsSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { commandLine, processesIn, signalProcess, waitUntil } from './processes.ts'

const fastShutdownMs = 30_000
const immediateShutdownMs = 10_000
export const socketDirPrefix = 'purser-pg-'

/**
 * Ends what a killed launcher left behind: an incomplete set-up, a postmaster that still runs on the cluster, its socket
 * directory, a stale postmaster.pid. The caller has the lock of the data directory, so these processes have no owner.
 * The postmaster is shut down in order, so every acknowledged commit is kept.
 */
export async function endOrphan(cluster: string): Promise<void> {
  for (const pid of processesIn(`${cluster}.new`) ?? []) signalProcess(pid, 'SIGKILL')
  const pidFile = path.join(cluster, 'postmaster.pid')
  const lines = existsSync(pidFile) ? readFileSync(pidFile, 'utf8').split('\n') : []
  const postmaster = Number(lines[0])
  const alive = () => liveProcesses(cluster, postmaster)
  if (alive().length > 0 && !(await shutDown(alive, postmaster))) {
    throw new Error(`The database in ${cluster} is still in use by process ${alive().join(', ')} and does not stop.`)
  }
  rmSync(pidFile, { force: true })
  const socketDir = lines[4]?.trim()
  if (socketDir && path.basename(socketDir).startsWith(socketDirPrefix))
    rmSync(socketDir, { recursive: true, force: true })
}

async function shutDown(alive: () => number[], postmaster: number): Promise<boolean> {
  if (alive().includes(postmaster)) signalProcess(postmaster, 'SIGINT')
  if (await waitUntil(() => alive().length === 0, fastShutdownMs)) return true
  for (const pid of alive()) signalProcess(pid, 'SIGQUIT')
  return waitUntil(() => alive().length === 0, immediateShutdownMs)
}

/**
 * Every process of a cluster has the cluster as its working directory, and a zombie has none. So a reused pid is never
 * mistaken for one.
 */
function liveProcesses(cluster: string, postmaster: number): number[] {
  const inside = processesIn(cluster)
  if (inside !== undefined) return inside
  return Number.isInteger(postmaster) && commandLine(postmaster)?.includes('postgres') ? [postmaster] : []
}
