import { type Address, type Hex, isTempo, requireNetwork } from '@purser/protocol'
import type { Chain } from '../../chain/port.ts'
import { listOpenHashes } from './methods/mpp-tempo/store.ts'
import type { ChainMemory, Ctx, Funds } from './ports.ts'
import { type CheckedRow, listOpenOf } from './settlement-store.ts'
import type { NewPayment } from './store.ts'

const openMax = 500
/** Most payers whose funds a process caches. */
const payersMax = 10_000
/** Longest time for which funds are cached, however long one node shows the same block. */
const cachedMs = 5_000

/**
 * Returns what a payer can pay with. Recording reads it again if it seems too low: a payment that is in a block and not yet
 * recorded as settled has already left the balance and must not be counted twice. Balance and nonces are read in one call, of one
 * block, and once per block and few seconds, so that endless verifications cost a node no more than that.
 */
export async function readFunds(
  { chains, clock, db, chainMemory }: Pick<Ctx, 'chains' | 'clock' | 'db' | 'chainMemory'>,
  payment: NewPayment,
): Promise<Funds> {
  const { payer, network, asset } = payment
  if (payer === null) throw new Error('the payment has no payer')
  const chain = chains.on(requireNetwork(network))
  const known = fundsAt(chainMemory, network, { block: (await chain.head()).number, nowMs: clock.now().getTime() })
  const name = `${asset} ${payer}`
  const reading = known.get(name) ?? readAnew({ chain, db }, { payer, network, asset })
  known.set(name, reading)
  reading.catch(() => known.delete(name))
  return reading
}

/** Returns the funds known in this block, and forgets those of any other and older ones. */
function fundsAt(
  { payerFunds }: ChainMemory,
  network: string,
  { block, nowMs }: { readonly block: bigint; readonly nowMs: number },
): Map<string, Promise<Funds>> {
  const known = payerFunds.get(network)
  if (known?.block === block && nowMs < known.until && known.funds.size < payersMax) return known.funds
  const funds = new Map<string, Promise<Funds>>()
  payerFunds.set(network, { block, funds, until: nowMs + cachedMs })
  return funds
}

interface Payer {
  readonly payer: string
  readonly network: string
  readonly asset: string
}

type Parts = Pick<Ctx, 'db'> & { readonly chain: Chain }

async function readAnew({ chain, db }: Parts, payer: Payer): Promise<Funds> {
  // Read before the balance: a transaction that is in a block by now has already lowered the balance.
  const minedIds = await listMined({ chain, db }, payer)
  const open = await listOpenOf(db, payer, openMax)
  const nonces = open.flatMap(({ settlement }) => (settlement.kind === 'permit2' ? [] : [settlement.nonce]))
  const permits = open.flatMap(({ settlement }) => (settlement.kind === 'permit2' ? [BigInt(settlement.nonce)] : []))
  const { rawBalance, spentNonces, spentPermits } = await chain.payerFunds({
    token: payer.asset as Address,
    account: payer.payer as Address,
    nonces,
    permits,
  })
  const [used, given] = [new Set<Hex>(spentNonces), new Set(spentPermits)]
  const isSpent = ({ settlement }: CheckedRow) =>
    settlement.kind === 'permit2' ? given.has(BigInt(settlement.nonce)) : used.has(settlement.nonce)
  return { rawBalance, spentIds: [...open.filter(isSpent).map(({ id }) => id), ...minedIds] }
}

/** Returns a payer's open Tempo payments whose transactions are in a block by a majority of the nodes. */
async function listMined({ chain, db }: Parts, payer: Payer): Promise<string[]> {
  if (!isTempo(chain.network)) return []
  const open = await listOpenHashes(db, payer, openMax)
  const mined = await chain.areInBlocks(open.map(({ txHash }) => txHash))
  return open.flatMap(({ id }, index) => (mined[index] === 'yes' ? [id] : []))
}
