import { type DevChain, fundNative, fundToken } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { createTestClient, http, publicActions } from 'viem'
import { expect } from 'vitest'
import { z } from 'zod'
import { assignPayoutCustomer } from '../src/features/withdrawals/index.ts'
import type { PartnerAccounts } from '../src/partners/index.ts'
import { sql } from '../src/platform/db/db.ts'
import { systemCtx } from '../src/platform/work/runner.ts'
import { aKeptLog } from './log-lines.ts'
import { type Managed, masters, path } from './partner-stage.ts'
import { createFakeScreening } from './screening-double.ts'
import { countAtNode, untilBooked } from './transfer-stage.ts'
import { type Answer, aWorld, type Org, type World } from './world.ts'

/**
 * Local chains with the properties of the main networks, and a service whose partners are doubles at the test's
 * addresses.
 */
export interface LiveStage {
  readonly world: World
  readonly org: Org
  /** Every line that the service has logged, at the most verbose level. */
  readonly lines: readonly string[]
  /** A managed wallet on Base with gas and, by default, 100 USDC. */
  aMaster(rawUsdc?: bigint): Promise<Managed>
  send(body: Record<string, unknown>): Promise<Answer>
  get(transfer: Answer): Promise<Record<string, unknown>>
  /** Returns the transfer once it is no longer pending. Makes blocks meanwhile. */
  ended(transfer: Answer): Promise<Record<string, unknown>>
  /** Makes blocks until the partner's latest status is this one. */
  untilPartnerStatus(transfer: Answer, partnerStatus: string): Promise<void>
  mine(blocks?: number): Promise<void>
  eventsOf(transfer: Answer): Promise<{ type: string; payload: Record<string, unknown> }[]>
  /** Waits until the node has received this many transactions of an account on Base. */
  untilBroadcast(address: Address, count: number): Promise<void>
  /** Makes a withdrawal due for polling now. */
  hurry(withdrawal: Answer): Promise<void>
  /** The number of transactions that an account signed on a network. */
  countOf(address: Address, network: string): Promise<number>
  stop(): Promise<void>
}

export type TestNode = ReturnType<typeof nodeOf>

export function nodeOf({ rpcUrl }: DevChain) {
  return createTestClient({ mode: 'anvil', transport: http(rpcUrl) }).extend(publicActions)
}

export async function aLiveStage(
  chains: readonly [DevChain, ...DevChain[]],
  partners: PartnerAccounts,
  changes: Partial<World['config']> = {},
  rpcUrls?: World['config']['rpcUrls'],
): Promise<LiveStage> {
  const { lines, log } = aKeptLog()
  const world = await aWorld({
    chains,
    ...(rpcUrls && { rpcUrls }),
    config: { transferWaitMs: 20_000, partners, ...changes },
    // With live keys a stale list blocks transfers, and the bundled list is stale by design.
    boot: { log, screening: createFakeScreening(() => new Date()) },
  })
  const org = await world.organisation()
  const operator = { ...systemCtx(world.server.deps), actor: { kind: 'operator' } } as const
  await assignPayoutCustomer(operator, org.id, { partner: 'bridge', customerId: 'cust_alice' })
  const nodes = chains.map(nodeOf)
  const mine = async (blocks = 1) => {
    await Promise.all(nodes.map((node) => node.mine({ blocks })))
  }
  const call = (method: string, at: string, body?: unknown) => world.call(org.liveKey, method, at, body)
  const get = async ({ body }: Answer) => (await call('GET', `/wallet-infra/transfers/${body.id}`)).body
  const { db } = world.database
  const statusOf = async ({ body }: Answer) => {
    await mine()
    const row = z.object({ partnerStatus: z.string().nullable() })
    return (await db.one(row, sql`select partner_status from transfers where id = ${String(body.id)}`)).partnerStatus
  }
  return {
    ...{ world, org, lines, get, mine },
    async aMaster(rawUsdc = 100_000_000n) {
      const { body } = await call('POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
      const master = { id: String(body.id), address: body.address as Address }
      await fundNative(chains[0], master.address, 10n ** 18n)
      if (rawUsdc > 0n) await fundToken(chains[0], 'USDC', master.address, rawUsdc)
      await untilBooked(world, chains[0])
      return master
    },
    send: (body) => call('POST', path, body),
    async ended(transfer) {
      const status = async () => {
        await mine()
        return (await get(transfer)).status
      }
      await expect.poll(status, { timeout: 60_000, interval: 100 }).not.toBe('pending')
      return get(transfer)
    },
    async untilPartnerStatus(transfer, partnerStatus) {
      await expect.poll(() => statusOf(transfer), { timeout: 60_000, interval: 100 }).toBe(partnerStatus)
    },
    eventsOf: ({ body }) =>
      db.many(
        z.object({ type: z.string(), payload: z.record(z.string(), z.unknown()) }),
        sql`select type, payload from events where payload ->> 'transactionId' = ${String(body.id)} order by id`,
      ),
    async untilBroadcast(address, count) {
      const base = chains.find(({ network }) => network === 'base') ?? chains[0]
      await expect.poll(() => countAtNode(world, base, address)).toBe(count)
    },
    async hurry({ body }) {
      await db.run(sql`update withdrawals set next_look_at = created_at where id = ${String(body.id)}`)
    },
    async countOf(address, network) {
      const { count } = await db.one(
        z.object({ count: z.bigint() }),
        sql`select count(*) as count from chain_transactions where sender = ${address} and network = ${network}`,
      )
      return Number(count)
    },
    stop: world.stop,
  }
}
