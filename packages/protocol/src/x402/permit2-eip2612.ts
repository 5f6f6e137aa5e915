import { parseAddress, sameAddress } from '../address.ts'
import { type Hex, hexToBytes, isHex } from '../bytes.ts'
import { parseRaw } from '../money.ts'
import { parseEcdsa } from '../signature.ts'
import { isObject } from './fields.ts'
import type { JsonObject } from './messages.ts'
import { permit2Address, type WirePermit2Authorization } from './permit2.ts'
import type { Reason } from './reasons.ts'

/**
 * A signed EIP-2612 permit that lets Permit2 spend the payer's token, so that the payer needs no gas for an approval.
 * The token verifies it.
 */
export type Permit2612 = {
  readonly value: bigint
  readonly deadline: bigint
  readonly v: 27 | 28
  readonly r: Hex
  readonly s: Hex
}

const fields = ['from', 'asset', 'spender', 'amount', 'nonce', 'deadline', 'signature', 'version'] as const
type Info = { readonly [field in (typeof fields)[number]]: string }

/** Name of the extension in a payment's `extensions` and in a facilitator's `/supported`. */
export const eip2612GasSponsoring = 'eip2612GasSponsoring'

/**
 * Reads the EIP-2612 permit in the payment's extension eip2612GasSponsoring. Returns undefined if there is none, which
 * includes an extension that the client merely echoed, or the reason why it does not fit the payment. Source: @x402/evm
 * 2.27.0 `exact/extensions.ts` and `shared/permit2.ts` (validateEip2612PermitForPayment).
 */
export function readPermit2612(
  extensions: JsonObject | undefined,
  authorization: WirePermit2Authorization,
  payableUntil: bigint,
): Permit2612 | Reason | undefined {
  const given = extensions?.[eip2612GasSponsoring]
  const info = isObject(given) && isObject(given.info) ? given.info : undefined
  if (info === undefined || fields.some((field) => !info[field])) return undefined
  if (!isInfo(info)) return 'invalid_eip2612_extension_format'
  const permit = permitOf(info)
  const [from, asset, spender] = [info.from, info.asset, info.spender].map((text) => parseAddress(text))
  if (permit === undefined || from === undefined || asset === undefined || spender === undefined)
    return 'invalid_eip2612_extension_format'
  if (!sameAddress(from, authorization.from)) return 'eip2612_from_mismatch'
  if (!sameAddress(asset, authorization.permitted.token)) return 'eip2612_asset_mismatch'
  if (!sameAddress(spender, permit2Address)) return 'eip2612_spender_not_permit2'
  return permit.deadline < payableUntil ? 'eip2612_deadline_expired' : permit
}

function isInfo(info: JsonObject): info is Info {
  return fields.every((field) => typeof info[field] === 'string')
}

function permitOf({ amount, nonce, deadline, signature, version }: Info): Permit2612 | undefined {
  const [value, used, until] = [amount, nonce, deadline].map((text) => parseRaw(text))
  if (typeof value !== 'bigint' || typeof used !== 'bigint' || typeof until !== 'bigint') return undefined
  if (!/^\d{1,10}(\.\d{1,10}){0,4}$/.test(version) || signature.length !== 132 || !isHex(signature)) return undefined
  const parsed = parseEcdsa(hexToBytes(signature))
  return typeof parsed === 'string' ? undefined : { value, deadline: until, v: parsed.v, r: parsed.r, s: parsed.s }
}
