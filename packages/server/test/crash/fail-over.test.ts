import { type DevChain, startChain } from '@purser/devnet'
import { afterEach, expect, test } from 'vitest'
import { countSettling, expectBooksToAgree } from './books.ts'
import { startLoad } from './load.ts'
import { aReplicatedPostgres } from './replicated-postgres.ts'
import { endEveryService } from './service.ts'
import { aDeployment } from './stage.ts'

const cleanUps: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await endEveryService()
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

test.each(['killed', 'frozen'] as const)(
  'primary %s under load, synchronous standby promoted: nothing acknowledged is lost, nothing is sold twice (O3, O5, O13)',
  { timeout: 240_000 },
  async (how) => {
    const postgres = await aReplicatedPostgres()
    cleanUps.push(postgres.remove)
    const chain: DevChain = await startChain({ network: 'base-sepolia', blockTimeSeconds: 0.5 })
    cleanUps.push(() => chain.stop())
    const deployment = await aDeployment({
      databaseUrl: postgres.url,
      chain,
      env: { SETTLE_WAIT_MS: '300', DATABASE_DURABILITY: 'synchronous' },
    })
    const service = await deployment.start()
    const load = startLoad({ deployment, where: async () => service.base, buyers: 12 })
    const served = (more: number) => {
      const enough = load.acknowledged() + more
      return expect.poll(() => load.acknowledged(), { timeout: 60_000, interval: 20 }).toBeGreaterThanOrEqual(enough)
    }
    await served(40)
    expect(await readDurability(service.base)).toEqual({ configured: 'synchronous', standby: 'confirmed' })

    await postgres.losePrimary(how)
    const lostAt = performance.now()
    await expect.poll(() => readyStatus(service.base), { timeout: 30_000, interval: 50 }).toBe(503)
    const noticedMs = performance.now() - lostAt
    await postgres.promote()
    const promotedAt = performance.now()
    await served(20)
    const servedMs = performance.now() - promotedAt
    await load.stop()
    await expect.poll(() => countSettling(postgres.standby), { timeout: 120_000, interval: 100 }).toBe(0n)

    const totals = await expectBooksToAgree({ db: postgres.standby, chain, deployment }, load)
    console.log(`${how}: ${JSON.stringify({ noticedMs, servedMs, totals, counts: load.counts })}`)
    // The design is 2 + 2 seconds; the rest is for a busy machine.
    expect(noticedMs).toBeLessThan(15_000)
    expect(await readyStatus(service.base)).toBe(200)
    // The promoted server has no standby of its own: an alert, and no reason to stop.
    await expect
      .poll(() => readDurability(service.base), { timeout: 20_000, interval: 200 })
      .toEqual({ configured: 'synchronous', standby: 'standby-missing' })
    expect(await service.end('SIGTERM')).toBe(0)
  },
)

async function readyStatus(base: string): Promise<number> {
  return (await fetch(`${base}/readyz`)).status
}

async function readDurability(base: string): Promise<unknown> {
  const body: { readonly durability?: unknown } = await (await fetch(`${base}/readyz`)).json()
  return body.durability
}
