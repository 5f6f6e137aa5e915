import { type Address, formatAmount, type Network } from '@purser/protocol'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'

/** An asset that the faucet has: a token, or the coin of the network, which has no address. */
export interface FaucetAsset {
  readonly symbol: string
  readonly decimals: number
  readonly address?: Address
}

interface FundingRequest {
  readonly network: Network
  readonly asset: FaucetAsset
  readonly rawAmount: bigint
  /** The faucet's address. */
  readonly account: Address
}

/** Throws `faucet-empty` unless the faucet has that much of the token or coin. */
export async function refuseEmpty(
  ctx: Pick<Ctx, 'chains'>,
  { network, asset, rawAmount, account }: FundingRequest,
): Promise<void> {
  const chain = ctx.chains.on(network)
  const [holding] = await chain.holdings([{ account, tokens: asset.address === undefined ? [] : [asset.address] }])
  const available = (asset.address === undefined ? holding?.native : holding?.tokens[0]) ?? 0n
  if (available >= rawAmount) return
  const shown = (raw: bigint) => formatAmount(raw, asset.decimals)
  throw fail('faucet-empty', { token: asset.symbol, required: shown(rawAmount), available: shown(available) })
}
