import { type Address, type Chain, formatAmount, type Network, requireNetwork } from '@purser/protocol'
import { z } from 'zod'
import type { ByoWalletId, ChildAddressId, MasterWalletId } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { ChainName } from '../../chains/index.ts'
import type { Coin, Spendable } from '../../funds/index.ts'
import { requireChildAddress } from '../children/children.ts'
import type { ChildAddressParams } from '../children/schema.ts'
import { fail } from '../errors.ts'
import { requireMasterWallet } from '../managed/managed.ts'
import type { Ctx } from '../ports.ts'
import { findByoWallet } from '../store.ts'

/** An account and the tokens that it was created for. */
interface Holder {
  readonly address: Address
  readonly chain: Chain
  readonly network: string
  readonly supportedTokens: readonly string[]
}

interface ManagedHolder extends Holder {
  readonly id: MasterWalletId | ChildAddressId
}

export async function balancesOfMaster(
  ctx: Pick<Ctx, 'db' | 'readFunds' | 'readHolding' | 'tenant'>,
  walletId: MasterWalletId,
  query: BalanceQuery,
): Promise<Balance[]> {
  return balancesOfManaged(ctx, await requireMasterWallet(ctx, walletId), query)
}

export async function balancesOfChild(
  ctx: Pick<Ctx, 'db' | 'readFunds' | 'readHolding' | 'tenant'>,
  params: z.output<typeof ChildAddressParams>,
  query: BalanceQuery,
): Promise<Balance[]> {
  const { id, address } = await requireChildAddress(ctx, params)
  return balancesOfManaged(ctx, { ...(await requireMasterWallet(ctx, params.id)), id, address }, query)
}

export async function balancesOfByo(
  ctx: Pick<Ctx, 'db' | 'readHolding' | 'tenant'>,
  walletId: ByoWalletId,
): Promise<Balance[]> {
  const wallet = await findByoWallet(ctx.db, ctx.tenant, walletId)
  if (wallet === undefined) throw fail('wallet-not-found')
  return (await amountsOf(ctx, wallet)).map((amount) => balance(wallet, amount))
}

async function balancesOfManaged(
  ctx: Pick<Ctx, 'readFunds' | 'readHolding' | 'tenant'>,
  holder: ManagedHolder,
  { spendable }: BalanceQuery,
): Promise<Balance[]> {
  if (!spendable) return (await amountsOf(ctx, holder)).map((amount) => balance(holder, amount))
  const network = requireNetwork(holder.network)
  const { id: walletId, address: owner } = holder
  const assets = coinsOf(holder, network).map((coin) => ({ tenant: ctx.tenant, network, walletId, owner, coin }))
  // The newest block is read after that of the funds, so that it includes all that the funds include.
  const funds = (await ctx.readFunds(network, assets)).spendable
  const bySymbol = new Map(assets.map(({ coin: { symbol } }, index) => [symbol, funds[index]]))
  return (await amountsOf(ctx, holder)).map((amount) => {
    const own = bySymbol.get(amount.coin.symbol)
    return own === undefined
      ? balance(holder, amount)
      : { ...balance(holder, amount), parts: writtenParts(amount, own) }
  })
}

/** An amount of a token or of the native coin. */
interface CoinAmount {
  readonly coin: Coin
  /** In the smallest unit. */
  readonly raw: bigint
}

/** The holder's present amounts: the native coin first, if the network has one, then the wallet's tokens in the wallet's order. */
async function amountsOf(ctx: Pick<Ctx, 'readHolding'>, holder: Holder): Promise<CoinAmount[]> {
  const network = requireNetwork(holder.network)
  const { native, tokens } = await ctx.readHolding(network, holder.address)
  return coinsOf(holder, network).flatMap((coin) => {
    const raw =
      coin.address === undefined ? native : tokens[network.tokens.findIndex(({ symbol }) => symbol === coin.symbol)]
    return raw === undefined ? [] : [{ coin, raw }]
  })
}

function coinsOf({ supportedTokens }: Holder, { nativeCoin, tokens }: Network): Coin[] {
  const native = nativeCoin === null ? [] : [{ ...nativeCoin, address: undefined }]
  return [...native, ...supportedTokens.flatMap((symbol) => tokens.find((token) => token.symbol === symbol) ?? [])]
}

function balance({ chain }: Holder, { coin: { symbol, decimals }, raw }: CoinAmount): Balance {
  return { tokenSymbol: symbol, formattedBalance: formatAmount(raw, decimals), rawBalance: raw.toString(), chain }
}

function writtenParts({ coin: { decimals }, raw }: CoinAmount, funds: Spendable): BalanceParts {
  const { available, reserved, unscreened, frozen, notFinal } = partsOf(raw, funds)
  const write = (amount: bigint) => formatAmount(amount, decimals)
  return {
    available: write(available),
    reserved: write(reserved),
    unscreened: write(unscreened),
    frozen: write(frozen),
    notFinal: write(notFinal),
  }
}

export const BalanceQuery = z.strictObject({
  spendable: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true')
    .meta({ description: 'Whether to add the `parts` of each balance.' }),
})
type BalanceQuery = z.output<typeof BalanceQuery>

const BalanceParts = z.strictObject({
  available: z.string().describe('Can be sent now.'),
  reserved: z.string().describe('Accepted transfers, withdrawals and payments will take it, gas included.'),
  unscreened: z.string().describe('On hold until screening has cleared its sender.'),
  frozen: z.string().describe('From a flagged sender.'),
  notFinal: z.string().describe('In blocks that are not final.'),
})
type BalanceParts = z.input<typeof BalanceParts>

/** Balance of one token, or of the native coin. */
export const Balance = z.strictObject({
  tokenSymbol: z.string().describe('Symbol of the token or of the native coin.'),
  formattedBalance: z.string().meta({ description: 'Decimal amount.', example: '12.5' }),
  rawBalance: z.string().meta({ description: 'Integer in the smallest unit.', example: '12500000' }),
  chain: ChainName,
  parts: BalanceParts.optional().meta({
    description: 'With `spendable=true`: decimal amounts that add up to the balance.',
  }),
})
export type Balance = z.input<typeof Balance>

named({ Balance, BalanceParts })

/** Parts of a balance, in its smallest unit. None is negative. */
interface Parts {
  readonly available: bigint
  readonly reserved: bigint
  readonly unscreened: bigint
  readonly frozen: bigint
  readonly notFinal: bigint
}

/**
 * Parts of a balance in the newest block, which add up to it. The funds are those of an earlier block that is deep enough: what arrived
 * since is not final, and what left since was reserved or available there. If holds and reservations exceed the balance, nothing is
 * available.
 */
export function partsOf(balance: bigint, funds: Omit<Spendable, 'readAt'>): Parts {
  let left = balance
  const take = (amount: bigint): bigint => {
    const taken = amount < 0n ? 0n : amount > left ? left : amount
    left -= taken
    return taken
  }
  const frozen = take(funds.frozen)
  const unscreened = take(funds.unscreened)
  const waiting = take(funds.notFinal)
  const arrived = take(left - funds.available - funds.reserved)
  const available = take(funds.available)
  return { available, reserved: left, unscreened, frozen, notFinal: waiting + arrived }
}
