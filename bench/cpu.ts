import { readdirSync, readFileSync } from 'node:fs'

/** A process to measure; with `tree` also its child processes, such as PostgreSQL's backends. */
export interface Watched {
  readonly name: string
  readonly pid: number
  readonly tree?: boolean
}

const msPerTick = 10 // USER_HZ is 100 on every Linux that this runs on

/** CPU time in milliseconds. */
export interface CpuUse {
  /** By process; the load generator is this one. */
  readonly byName: ReadonlyMap<string, number>
  /**
   * CPU time of all other processes and of the host (steal). The larger it is, the less the other figures can be
   * trusted.
   */
  readonly elsewhere: number
}

/** Reads the CPU time of these processes. The returned function returns what was used since. */
export function watchCpu(watched: readonly Watched[]): () => CpuUse {
  const before = watched.map(usedMs)
  const ownBefore = process.cpuUsage()
  const machineBefore = machineMs()
  return () => {
    const own = process.cpuUsage(ownBefore)
    const used = watched.map((one, index): [string, number] => [one.name, usedMs(one) - (before[index] ?? 0)])
    const byName = new Map([...used, ['load generator', (own.user + own.system) / 1_000] as const])
    const known = [...byName.values()].reduce((total, ms) => total + ms, 0)
    return { byName, elsewhere: Math.max(0, machineMs() - machineBefore - known) }
  }
}

/** Busy and stolen time of all cores since the machine started. */
function machineMs(): number {
  const [, user, nice, system, , , irq, softirq, steal] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '')
    .split(/ +/)
    .map(Number)
  return [user, nice, system, irq, softirq, steal].reduce<number>((total, ticks) => total + (ticks ?? 0), 0) * msPerTick
}

function usedMs({ pid, tree }: Watched): number {
  const own = statOf(pid)
  if (own === undefined) return 0
  if (tree !== true) return own.ticks * msPerTick
  const children = allPids()
    .flatMap((id) => statOf(id) ?? [])
    .filter(({ parent }) => parent === pid)
  return children.reduce((sum, child) => sum + child.ticks, own.ticks + own.endedChildrenTicks) * msPerTick
}

type Stat = { parent: number; ticks: number; endedChildrenTicks: number }

function statOf(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const at = (index: number) => fields[index] ?? 0
    return { parent: at(1), ticks: at(11) + at(12), endedChildrenTicks: at(13) + at(14) }
  } catch {
    return undefined
  }
}

function allPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}
