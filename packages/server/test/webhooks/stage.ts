import { expect } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { insertEvents } from '../../src/platform/events.ts'
import { type Answer, aWorld, type Org, type World } from '../world.ts'
import { ShiftedClock } from './clock.ts'
import { type Answering, aReceiver, type Receiver } from './receiver.ts'

export interface Hook {
  readonly id: string
  readonly secret: string
  readonly receiver: Receiver
}

export interface Stage {
  readonly world: World
  readonly clock: ShiftedClock
  /** A webhook of the organisation's test environment, and the server behind it. */
  hook(org: Org, options?: { readonly events?: readonly string[]; readonly answer?: Answering }): Promise<Hook>
  /** Publishes events as a feature would, in one transaction. */
  publish(org: Org, count?: number, type?: string): Promise<readonly string[]>
  attempts(org: Org, hook: Hook): Promise<Answer['list']>
  /** Deliveries by status, of all webhooks or of one. */
  deliveries(hook?: Hook): Promise<Record<string, number>>
  stop(): Promise<void>
}

export async function aStage(role: 'all' | 'api' = 'all'): Promise<Stage> {
  const clock = new ShiftedClock()
  const world = await aWorld({ boot: { clock }, config: { role } })
  const receivers: Receiver[] = []
  return {
    world,
    clock,
    async hook(org, { events = ['*'], answer } = {}) {
      const receiver = await aReceiver(answer)
      receivers.push(receiver)
      const made = await world.call(org.testKey, 'POST', '/webhooks', { url: receiver.url, events })
      expect(made.status).toBe(201)
      return { id: String(made.body.id), secret: String(made.body.secret), receiver }
    },
    publish: (org, count = 1, type = 'vault.persisted') => publish(world, org, { count, type }),
    attempts: async (org, hook) =>
      (await world.call(org.testKey, 'GET', `/webhooks/${hook.id}/attempts?limit=500`)).list,
    async deliveries(hook) {
      const rows = await world.database.db.many(
        z.object({ status: z.string(), count: z.bigint() }),
        sql`select status, count(*) as count from webhook_deliveries
          where ${hook?.id ?? null}::text is null or webhook_id = ${hook?.id ?? null} group by status`,
      )
      return Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]))
    },
    async stop() {
      for (const receiver of receivers) await receiver.stop()
      await world.stop()
    },
  }
}

let number = 0

function publish(world: World, org: Org, { count, type }: { count: number; type: string }): Promise<readonly string[]> {
  const { deps } = world.server
  const ctx = { ...deps, tenant: { organisationId: org.id, environment: 'test' as const } }
  const payloads = Array.from({ length: count }, () => ({
    vaultId: `vlt_${++number}`,
    persistedAt: deps.clock.now().toISOString(),
  }))
  return deps.db.tx((tx) => insertEvents(ctx, tx, type, payloads))
}
