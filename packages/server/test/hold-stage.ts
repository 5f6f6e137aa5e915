import { randomBytes } from 'node:crypto'
import { type Address, networkByName, tokenBySymbol } from '@purser/protocol'
import { z } from 'zod'
import type { HoldQuestion } from '../src/features/funds/index.ts'
import { listBookings, storeBookings, withdraw } from '../src/features/wallets/deposits/store-scan.ts'
import { lockRowsAbove } from '../src/features/wallets/deposits/transaction-store.ts'
import { amountsOnHold } from '../src/features/wallets/screening/deposit-store.ts'
import { screeningRecurring } from '../src/features/wallets/screening/tasks.ts'
import type { Screened } from '../src/partners/screening/port.ts'
import { sql, type Tx } from '../src/platform/db/db.ts'
import { systemCtx } from '../src/platform/work/runner.ts'
import { createFakeScreening } from './screening-double.ts'
import { ShiftedClock } from './webhooks/clock.ts'
import { aWorld, unreachableMain } from './world.ts'

export const listed: Screened = { result: 'flagged', reason: 'listed', oracle: 'clean' }
export const clean: Screened = { result: 'clear', reason: 'clean', oracle: 'clean' }
/** The screening result when the list is stale and the oracle fails. */
export const noSource: Screened = { result: 'pending', reason: 'list-stale', oracle: 'failed' }

export interface Wallet {
  readonly id: string
  readonly address: Address
}

export const aSender = (): Address => `0x${randomBytes(20).toString('hex')}`

const lower = (address: string): Address => `0x${address.slice(2).toLowerCase()}`
const hash = (): Address => `0x${randomBytes(32).toString('hex')}`

/** A movement as a node reports it. */
export interface Movement {
  readonly from: Address
  readonly to: Address
  readonly raw: bigint
  /** Default: the next block. */
  readonly block?: bigint
  readonly logIndex?: number
}

/** A deployment without background work. A test books movements and runs screening. */
export async function aHoldStage(environment: 'test' | 'live' = 'test') {
  const clock = new ShiftedClock()
  const screening = createFakeScreening(() => clock.now())
  const world = await aWorld({ rpcUrls: unreachableMain, config: { role: 'api' }, boot: { clock, screening } })
  const org = await world.organisation()
  const network = networkByName(environment === 'live' ? 'base' : 'base-sepolia')
  const usdc = network && tokenBySymbol(network, 'USDC')?.address
  if (network === undefined || usdc === undefined) throw new Error('no USDC')
  const { db } = world.database
  const { deps } = world.server
  const tenant = { organisationId: org.id, environment } as const
  const key = environment === 'live' ? org.liveKey : org.testKey
  let newest = 1n

  const made = async (path: string, body: unknown): Promise<Wallet> => {
    const response = await world.call(key, 'POST', path, body)
    if (response.status !== 201) throw new Error(JSON.stringify(response.body))
    return { id: String(response.body.id), address: response.body.address as Address }
  }

  /** Books movements as the watcher does. */
  const bookIn = async (tx: Tx, ...movements: readonly Movement[]): Promise<void> => {
    const transfers = movements.map(({ from, to, raw, block = newest + 1n, logIndex = 0 }) => {
      if (block > newest) newest = block
      const place = { txHash: hash(), blockHash: hash(), blockNumber: block, logIndex }
      return { token: lower(usdc), from: lower(from), to: lower(to), rawAmount: raw, ...place }
    })
    const timestampSeconds = BigInt(Math.ceil(clock.now().getTime() / 1_000))
    const numbers = new Set(transfers.map(({ blockNumber }) => blockNumber))
    const headers = [...numbers].map((number) => ({ number, timestampSeconds }))
    const bookings = await listBookings(tx, network, { headers, transfers, countsEarlier: true })
    await storeBookings(deps, tx, network, { bookings })
  }
  const book = (...movements: readonly Movement[]): Promise<void> => deps.db.tx((tx) => bookIn(tx, ...movements))

  const onHold = async ({ id }: Wallet): Promise<{ readonly frozen: bigint; readonly unscreened: bigint }> => {
    const [amount] = await amountsOnHold(db, [
      { tenant, walletId: id, network: network.name, token: usdc, upTo: 1_000_000_000n },
    ])
    return { frozen: amount?.frozen ?? -1n, unscreened: amount?.unscreened ?? -1n }
  }

  /** The unscreened amount at a place of any tenant. */
  const unscreenedOf = async (place: Pick<HoldQuestion, 'tenant' | 'walletId'>): Promise<bigint> => {
    const [amount] = await amountsOnHold(db, [{ ...place, network: network.name, token: usdc, upTo: 1_000_000_000n }])
    return amount?.unscreened ?? -1n
  }

  const screenWhatIsDue = async (): Promise<void> => {
    for (const work of screeningRecurring) await work.run(systemCtx(deps))
  }

  return {
    clock,
    screening,
    world,
    org,
    key,
    db,
    network,
    usdc,
    stop: () => world.stop(),
    master: () => made('/wallet-infra/master-wallets', { chain: 'base', supportedTokens: ['USDC'] }),
    child: (master: Wallet) => made(`/wallet-infra/master-wallets/${master.id}/child-addresses`, {}),
    /** The newest block with a booked movement. */
    newestBlock: () => newest,
    bookIn,
    book,
    booked: (from: Address, to: Wallet, raw: bigint) => book({ from, to: to.address, raw }),
    /** Withdraws the movements above a block, as a reorganization does. */
    reorganize: (above: bigint) =>
      deps.db.tx(async (tx) => withdraw(deps, tx, await lockRowsAbove(tx, network.name, above))),
    onHold,
    unscreenedOf,
    /** Ends traces and freezes that the bookings left to background work. */
    async endTraces(): Promise<void> {
      for (const work of screeningRecurring)
        if (work.name === 'wallets.continue-traces') await work.run(systemCtx(deps))
    },
    frozen: async (...wallets: readonly Wallet[]): Promise<bigint[]> =>
      (await Promise.all(wallets.map(onHold))).map((amount) => amount.frozen),
    screenWhatIsDue,
    /** Sets the screening result of the addresses; a new list version triggers their re-screening. */
    async nowIs(screened: Screened, ...addresses: readonly Address[]): Promise<void> {
      for (const address of addresses) screening.setResult(address, screened)
      screening.swapList(addresses.map(lower))
      await screenWhatIsDue()
    },
    async events(type: string): Promise<readonly unknown[]> {
      const { list } = await world.call(key, 'GET', `/events?type=${type}&limit=500`)
      return list.map(({ payload }) => payload)
    },
    /** The deposits of a wallet that are not withdrawn, in the chain's order. */
    deposits: ({ id }: Wallet) =>
      db.many(
        Deposit,
        sql`select id, aml_status, frozen_raw_amount::text as frozen from wallet_transactions
          where wallet_id = ${id} and direction = 'in' and status <> 'withdrawn' order by block_number, log_index`,
      ),
  }
}
export type HoldStage = Awaited<ReturnType<typeof aHoldStage>>

const Deposit = z.object({ id: z.string(), amlStatus: z.string(), frozen: z.string() })
