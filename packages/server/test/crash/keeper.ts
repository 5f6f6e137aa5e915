import type { Service } from './service.ts'
import type { Deployment } from './stage.ts'

/** Runs one service at a time and tells buyers where it is. */
export interface Keeper {
  /** The living service's address; waits while there is none. */
  where(): Promise<string>
  service(): Service
  /** Starts one where none lives. */
  start(): Promise<Service>
  /** Ends the living one; buyers wait from now on, and their requests under way meet what they meet. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | string>
}

/** Keeps the next service ready while one lives. */
export function keepService({ prepare }: Pick<Deployment, 'prepare'>): Keeper {
  let living: Service | undefined
  let next = prepare()
  let up = Promise.withResolvers<string>()
  return {
    where: () => up.promise,
    service() {
      if (living === undefined) throw new Error('no service lives')
      return living
    },
    async start() {
      next.go()
      living = await next.up()
      next = prepare()
      up.resolve(living.base)
      return living
    },
    async end(signal) {
      const dying = this.service()
      living = undefined
      up = Promise.withResolvers()
      return dying.end(signal)
    },
  }
}
