import {
  type BridgeRelayer,
  createBridgeRelayer,
  type DevChain,
  fundNative,
  fundSandbox,
  fundToken,
  sandboxBridgeAddress,
  sandboxPoolAddress,
  startChain,
} from '@purser/devnet'
import type { Address, Hex } from '@purser/protocol'
import { createPublicClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { expect } from 'vitest'
import { z } from 'zod'
import type { BootOptions } from '../src/boot.ts'
import type { PlannedCall, Quoted, RouteQuote, RouteStatus, RoutingPartner } from '../src/partners/routing/port.ts'
import { sql } from '../src/platform/db/db.ts'
import { aKeptLog } from './log-lines.ts'
import { ShiftedClock } from './webhooks/clock.ts'
import { type Answer, aPayer, aWorld, type Org, type World } from './world.ts'

/** A filter between the service and the sandbox; an empty one changes nothing. */
export interface Conduct {
  readonly quote?: (quote: RouteQuote) => Quoted
  /** `reference`: the partner's, of the route. */
  readonly status?: (own: () => Promise<RouteStatus>, reference: string) => Promise<RouteStatus>
  readonly expects?: (own: () => Expected, call: PlannedCall) => Expected
}

type Expected = ReturnType<RoutingPartner['expects']>

/** Two chains with a market and a bridge, and a service that swaps and bridges with them. */
export interface PartnerStage extends TransferReader {
  readonly base: DevChain
  readonly ethereum: DevChain
  readonly world: World
  readonly org: Org
  readonly relayer: BridgeRelayer
  /** The system clock, moved forward by what a test says. */
  readonly clock: ShiftedClock
  /** Every line that the service has logged. */
  readonly lines: readonly string[]
  conduct: Conduct
  /** Resets the relayer and the partner's conduct. */
  renew(): void
  /** A managed wallet on Base with gas and, by default, 100 USDC; optionally of another deployment. */
  aMaster(rawUsdc?: bigint, of?: { readonly at: World; readonly key: string }): Promise<Managed>
  send(body: Record<string, unknown>): Promise<Answer>
  /** In wei on Base. */
  coinOf(address: Address): Promise<bigint>
  stop(): Promise<void>
}

export interface Managed {
  readonly id: string
  readonly address: Address
}

export const masters = '/wallet-infra/master-wallets'
export const path = '/wallet-infra/transfer'
export const partners = { sandbox: { pool: sandboxPoolAddress, bridge: sandboxBridgeAddress } } as const

/** `before` returns the address of a proxy for the node on Base. */
export async function aPartnerStage({
  before,
  boot,
}: {
  readonly before?: (url: string) => Promise<string>
  readonly boot?: Pick<BootOptions, 'screening' | 'depositPollMsMax'>
} = {}): Promise<PartnerStage> {
  const [base, ethereum] = await Promise.all([
    startChain({ network: 'base-sepolia' }),
    startChain({ network: 'eth-sepolia' }),
  ])
  await Promise.all([fundSandbox(base), fundSandbox(ethereum)])
  const clock = new ShiftedClock()
  const { lines, log } = aKeptLog()
  const now = { conduct: {} as Conduct, relayer: createBridgeRelayer([base, ethereum]) }
  const world = await aWorld({
    chains: [base, ethereum],
    ...(before === undefined ? {} : { rpcUrls: { 'base-sepolia': [await before(base.rpcUrl)] } }),
    config: { transferWaitMs: 20_000, partners },
    boot: {
      ...boot,
      clock,
      log,
      routing: ({ test: { sandbox }, live }) => ({
        live,
        test: sandbox === undefined ? {} : { sandbox: behaving(sandbox, () => now.conduct) },
      }),
    },
  })
  const org = await world.organisation()
  return {
    ...{ base, ethereum, world, org, clock, lines },
    ...transferReaderOf(world, org),
    get relayer() {
      return now.relayer
    },
    get conduct() {
      return now.conduct
    },
    set conduct(conduct) {
      now.conduct = conduct
    },
    renew: () => Object.assign(now, { conduct: {}, relayer: createBridgeRelayer([base, ethereum]) }),
    aMaster: (rawUsdc, of = { at: world, key: org.testKey }) => aMaster(base, rawUsdc, of),
    send: (body) => world.call(org.testKey, 'POST', path, body),
    coinOf: (address) => createPublicClient({ transport: http(base.rpcUrl) }).getBalance({ address }),
    async stop() {
      await world.stop()
      await Promise.all([base.stop(), ethereum.stop()])
    },
  }
}

function behaving(sandbox: RoutingPartner, conduct: () => Conduct): RoutingPartner {
  return {
    name: 'sandbox',
    contracts: sandbox.contracts,
    async quote(requested) {
      const quoted = await sandbox.quote(requested)
      const { quote: changed } = conduct()
      return quoted.ok && changed !== undefined ? changed(quoted.quote) : quoted
    },
    expects(request, call) {
      const own = () => sandbox.expects(request, call)
      return conduct().expects?.(own, call) ?? (conduct().expects === undefined ? own() : undefined)
    },
    status: (route) => (conduct().status ?? ((own) => own()))(() => sandbox.status(route), route.reference),
  }
}

async function aMaster(
  base: DevChain,
  rawUsdc = 100_000_000n,
  { at, key }: { readonly at: World; readonly key: string },
): Promise<Managed> {
  const { body } = await at.call(key, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const master = { id: String(body.id), address: body.address as Address }
  await fundNative(base, master.address, 10n ** 18n)
  if (rawUsdc > 0n) await fundToken(base, 'USDC', master.address, rawUsdc)
  return master
}

export function stranger(): Address {
  return privateKeyToAddress(generatePrivateKey())
}

export function swapOf(from: Managed, changes: Record<string, unknown> = {}) {
  const toAddress = stranger()
  const usual = { fromToken: 'ETH', toChain: 'base', toToken: 'USDC', amount: '0.01', minToAmount: '0.001', toAddress }
  return { fromWalletId: from.id, ...usual, ...changes }
}

export function bridgeOf(from: Managed, changes: Record<string, unknown> = {}) {
  const usual = { fromToken: 'USDC', toChain: 'ethereum', toToken: 'USDC', amount: '50', toAddress: stranger() }
  return { fromWalletId: from.id, ...usual, ...changes }
}

/** A customer's payment of 50 USDC to a wallet of the organisation, which the service has settled; returns its transaction. */
export async function aSettledPayment(
  { world, org, clock }: PartnerStage,
  chain: DevChain,
  walletId: string,
): Promise<Hex> {
  const post = (path: string, body: unknown) => world.call(org.testKey, 'POST', `/payments/${path}`, body)
  const bought = { walletId, resource: 'https://api.example.com/report', price: '50' }
  const challenge = await post('challenge', bought)
  const validBefore = String(Math.floor(clock.now().getTime() / 1_000) + 200)
  const credential = await (await aPayer(chain)).credential(challenge, { sign: { validBefore } })
  const verified = await post('verify', { ...bought, protocol: 'x402', credential, currency: 'USD', method: 'GET' })
  expect(verified.status).toBe(200)
  const { paymentId, settlementToken } = verified.body
  const settle = async () => (await post('settle', { paymentId, settlementToken })).status
  await expect.poll(settle, { interval: 200 }).toBe(200)
  return String((await post('settle', { paymentId, settlementToken })).body.txHash) as Hex
}

/** What the API and the database report about a transfer. */
interface TransferReader {
  get(transfer: Answer): Promise<Record<string, unknown>>
  /** Returns the transfer once it is no longer pending. */
  ended(transfer: Answer): Promise<Record<string, unknown>>
  eventsOf(transferId: unknown): Promise<{ type: string; payload: Record<string, unknown> }[]>
  /** The partner's latest status of a transfer. */
  partnerStatusOf(transfer: Answer): Promise<string | null | undefined>
  /** The number of transactions that the wallet signed. */
  countOf(master: Managed): Promise<number>
}

function transferReaderOf({ call, database }: World, { testKey }: Org): TransferReader {
  const get = async ({ body }: Answer) => (await call(testKey, 'GET', `/wallet-infra/transfers/${body.id}`)).body
  return {
    get,
    async ended(transfer) {
      await expect.poll(async () => (await get(transfer)).status, { timeout: 60_000 }).not.toBe('pending')
      return get(transfer)
    },
    eventsOf: (transferId) =>
      database.db.many(
        z.object({ type: z.string(), payload: z.record(z.string(), z.unknown()) }),
        sql`select type, payload from events where payload ->> 'transactionId' = ${String(transferId)} order by id`,
      ),
    async partnerStatusOf({ body }) {
      const row = await database.db.maybeOne(
        z.object({ partnerStatus: z.string().nullable() }),
        sql`select partner_status from transfers where id = ${String(body.id)}`,
      )
      return row?.partnerStatus
    },
    async countOf({ address }) {
      const { count } = await database.db.one(
        z.object({ count: z.bigint() }),
        sql`select count(*) as count from chain_transactions where sender = ${address}`,
      )
      return Number(count)
    },
  }
}
