import type { Service } from './service.ts'
import type { Deployment } from './stage.ts'

/** Runs one service at a time and returns its address to buyers. */
export interface Keeper {
  /** The running service's address; waits while there is none. */
  where(): Promise<string>
  service(): Service
  /** Starts a service if none runs. */
  start(): Promise<Service>
  /** Ends the running service, or the one that is starting once it is up. Buyers wait from now on, and their open requests fail or succeed. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | string>
}

/** Keeps the next service prepared while one runs. */
export function keepService({ prepare }: Pick<Deployment, 'prepare'>): Keeper {
  let living: Service | undefined
  let starting: Promise<Service> | undefined
  let next = prepare()
  let up = Promise.withResolvers<string>()
  return {
    where: () => up.promise,
    service() {
      if (living === undefined) throw new Error('no service runs')
      return living
    },
    async start() {
      if (living !== undefined) return living
      starting = next.then((waiting) => {
        waiting.go()
        return waiting.up()
      })
      living = await starting
      starting = undefined
      next = prepare()
      up.resolve(living.base)
      return living
    },
    async end(signal) {
      await starting
      const dying = this.service()
      living = undefined
      up = Promise.withResolvers()
      return dying.end(signal)
    },
  }
}
