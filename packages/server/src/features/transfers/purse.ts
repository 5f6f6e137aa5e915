import type { Address, Network } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { sumDrawnSince } from './drawn-store.ts'
import { listNextNonces, listOpenCosts } from './facts-store.ts'
import type { Prices } from './weigh.ts'

/** What an account has of a network's coin that it has not promised, as of a moment ago; in wei. */
export interface Purse {
  readonly network: Network
  readonly address: Address
  readonly left: bigint
  /** Whoever took this nonce or a later one came after. */
  readonly since: bigint
  /** What costs are reckoned with. */
  readonly prices: Prices
}

/** Weighs a master for gas that it pays beside its own transfers. What is promised is read before what is there, as for a transfer. */
export async function readPurse(
  ctx: Pick<Ctx, 'db' | 'chains'>,
  { network, address }: { readonly network: Network; readonly address: Address },
): Promise<Purse> {
  const chain = ctx.chains.on(network)
  const place = { network: network.name, address }
  const prices = await chain.offeredFees()
  const [lane] = await listNextNonces(ctx.db, [place])
  const [promised] = await listOpenCosts(ctx.db, [{ ...place, ...prices }])
  const [held] = await chain.holdings([{ account: address, tokens: [] }])
  return { network, address, left: (held?.native ?? 0n) - (promised?.wei ?? 0n), since: lane?.nextNonce ?? 0n, prices }
}

/** Whether the account can still pay so much, without what others have drawn since; the caller holds its lock (`lockSource`). */
export async function canPay(tx: Tx, { network, address, left, since, prices }: Purse, wei: bigint): Promise<boolean> {
  const own = { source: address, master: address, since: { source: since, master: since, authorised: 0n } }
  const [drawn] = await sumDrawnSince(tx, [{ network: network.name, ...own, token: '', prices }])
  return left - (drawn?.source ?? 0n) >= wei
}
