import { type Network, parseAmount, type TokenInfo, tokenBySymbol } from '@purser/protocol'
import { failPlatform } from '../../../platform/errors.ts'
import { fail as failWallets } from '../errors.ts'
import { isGasless } from '../gasless.ts'
import { networkOf } from '../managed/managed.ts'
import type { MasterWalletRow } from '../managed/store.ts'
import type { Ctx } from '../ports.ts'
import { fail } from './errors.ts'
import type { SweepRequest } from './schema.ts'
import type { SweepRow } from './store.ts'

/** A requested sweep, validated against the wallet's chain. */
export interface SweepTerms {
  readonly wallet: MasterWalletRow
  readonly network: Network
  readonly token: TokenInfo
  /** In the token's smallest unit; children with a lower balance are skipped. */
  readonly rawAmountMin: bigint
  readonly childAddressIds: SweepRequest['childAddressIds']
  readonly trigger: SweepRow['trigger']
}

/**
 * Terms of a sweep of this wallet. Its token must support signed authorizations, or be on Tempo, where fees can be sponsored. Balances
 * below the smallest payment that is settled are always skipped, since the operator pays the gas.
 */
export function sweepTerms(
  ctx: Pick<Ctx, 'settleMicroUsdMin'>,
  wallet: MasterWalletRow,
  request: Pick<SweepRequest, 'token' | 'minAmount' | 'childAddressIds'>,
  trigger: SweepRow['trigger'],
): SweepTerms {
  const network = networkOf(wallet)
  const at = trigger === 'automatic' ? '/autoSweep' : ''
  const token = sweepableToken(network, request.token, `${at}/token`)
  const requested = request.minAmount === undefined ? 1n : rawAmountOf(token, request.minAmount, `${at}/minAmount`)
  const rawAmountMin = [requested, 1n, dustOf(ctx.settleMicroUsdMin, token)].reduce((most, raw) =>
    raw > most ? raw : most,
  )
  return { wallet, network, token, rawAmountMin, childAddressIds: request.childAddressIds, trigger }
}

/** Every token that can be swept is a dollar stablecoin. Rounded down. */
function dustOf(microUsd: bigint, { decimals }: TokenInfo): bigint {
  return (microUsd * 10n ** BigInt(decimals)) / 1_000_000n
}

function sweepableToken(network: Network, symbol: string, path: `${string}/token`): TokenInfo {
  const token = tokenBySymbol(network, symbol)
  if (token === undefined) {
    const known = network.tokens.map((one) => one.symbol).join(', ')
    const message = `is not a token of ${network.name}, which has ${known}`
    throw failWallets('token-not-supported', { errors: [{ path, message }] })
  }
  if (!isGasless(network, token) && network.nativeCoin !== null) throw fail('sweep-not-supported')
  return token
}

function rawAmountOf(token: TokenInfo, amount: string, path: `${string}/minAmount`): bigint {
  const raw = parseAmount(amount, token.decimals)
  if (typeof raw === 'bigint') return raw
  const message = `is no amount of ${token.symbol}, which has ${token.decimals} decimals`
  throw failPlatform('validation-error', { errors: [{ path, message }] })
}
