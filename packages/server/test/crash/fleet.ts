import { type Keeper, keepService } from './keeper.ts'
import { type Env, spawnWaiting } from './service.ts'

/** Several processes of one deployment, on one database and one file store. Each is restarted when it dies. */
export interface Fleet {
  readonly keepers: readonly Keeper[]
  /** Returns a process that runs, preferably this one; waits while there is none. */
  where(index: number): Promise<string>
  start(): Promise<void>
  /** Kills one with SIGKILL and starts it again. */
  kill(index: number): Promise<void>
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<readonly (number | string)[]>
}

export function keepFleet(processes: number, env: Env): Fleet {
  const keepers = Array.from({ length: processes }, () => keepService({ prepare: () => spawnWaiting(env) }))
  const keeper = (index: number): Keeper => {
    const found = keepers[index % processes]
    if (found === undefined) throw new Error('no such process')
    return found
  }
  return {
    keepers,
    // The first of those that run wins the race.
    where: (index) => Promise.race(keepers.map((_, turn) => keeper(index + turn).where())),
    async start() {
      await Promise.all(keepers.map((one) => one.start()))
    },
    async kill(index) {
      await keeper(index).end('SIGKILL')
      await keeper(index).start()
    },
    end: (signal) => Promise.all(keepers.map((one) => one.end(signal))),
  }
}
