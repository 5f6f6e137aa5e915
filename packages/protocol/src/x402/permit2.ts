import { type Address, parseAddress } from '../address.ts'
import { networkByCaip2, tokenByAddress } from '../chains.ts'
import { parseRaw } from '../money.ts'
import { signatureBytesMax } from '../signature.ts'
import type { Expected } from './exact-evm.ts'
import { address, type Cursor, isObject, member, optionalObject, rawAmount, text } from './fields.ts'
import type { JsonObject, Parsed, PaymentRequirementsV2, ResourceInfo } from './messages.ts'
import { parsed, readRequirementsV2, readResource } from './parse.ts'
import type { Reason } from './reasons.ts'

/** Uniswap's Permit2, at one address on every chain. */
export const permit2Address: Address = '0x000000000022D473030F116dDEE9F6B43aC78BA3'

/** The x402 contracts that spend a Permit2 permit, at one address on every chain that has them. */
export const permit2Proxies = {
  exact: '0x402085c248EeA27D92E8b30b2C58ed07f9E20001',
  upto: '0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002',
} as const satisfies { readonly [scheme: string]: Address }

/** The schemes that pay by Permit2: `exact` takes the permitted amount, `upto` at most that amount. */
export type Permit2Scheme = keyof typeof permit2Proxies

/** A payer's permit on the wire; integers as decimal digits below 2^256. `facilitator` is present for `upto` only. */
export type WirePermit2Authorization = {
  readonly from: Address
  readonly permitted: { readonly token: Address; readonly amount: string }
  readonly spender: Address
  readonly nonce: string
  readonly deadline: string
  readonly witness: { readonly to: Address; readonly facilitator?: Address; readonly validAfter: string }
}

/** A payment by Permit2, version 2 (version 1 has none). The signature is any text, and is checked later. */
export type Permit2Payment = {
  readonly x402Version: 2
  readonly resource?: ResourceInfo | undefined
  readonly accepted: PaymentRequirementsV2
  readonly payload: { readonly signature: string; readonly permit2Authorization: WirePermit2Authorization }
  readonly extensions?: JsonObject | undefined
}

const signatureTextMax = 2 + 2 * signatureBytesMax

/**
 * Reads a payment by Permit2 of scheme `exact` or `upto`. Unknown members are dropped; never throws.
 * Source: x402 specification v2, `scheme_exact_evm.md` and `scheme_upto_evm.md`; @x402/evm 2.27.0 `types.ts`.
 *
 * @example
 * parsePermit2Payment({ x402Version: 1 }).fault.path // '/x402Version'
 * parsePermit2Payment({ x402Version: 2, payload: {} }).fault.reason // 'unsupported_payload_type'
 */
export function parsePermit2Payment(value: unknown): Parsed<Permit2Payment> {
  if (!isObject(value) || value.x402Version !== 2) return refuse('invalid_x402_version', '/x402Version', 'must be 2')
  if (!isObject(value.payload) || !('permit2Authorization' in value.payload))
    return refuse('unsupported_payload_type', '/payload', 'must hold a permit2Authorization')
  const scheme = isObject(value.accepted) && value.accepted.scheme === 'upto' ? 'upto' : 'exact'
  return parsed(value, 'invalid_payload', (cursor) => ({
    x402Version: 2,
    resource: value.resource == null ? undefined : readResource(member(cursor, 'resource')),
    accepted: readRequirementsV2(member(cursor, 'accepted')),
    payload: readPayload(member(cursor, 'payload'), scheme),
    extensions: optionalObject(cursor, 'extensions'),
  }))
}

/**
 * Reads requirements for a Permit2 payment, or returns the reason why they are not supported. Supports every token of
 * the registry, with or without EIP-3009. For `upto` the amount is the maximum that may be taken.
 *
 * @example
 * const network = networkByName('base-sepolia')
 * const offer = { network, token: tokenBySymbol(network, 'USDC'), rawAmount: 10_000n, payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', maxTimeoutSeconds: 60 }
 * expectedPermit2Of(requirementsV2(offer)).rawAmount // 10000n
 * expectedPermit2Of({ ...requirementsV2(offer), network: 'eip155:1234567' }) // 'invalid_network'
 */
export function expectedPermit2Of(requirements: PaymentRequirementsV2): Expected | Reason {
  const network = networkByCaip2(requirements.network)
  if (network === undefined) return 'invalid_network'
  const token = tokenByAddress(network, requirements.asset)
  const payTo = parseAddress(requirements.payTo)
  const rawAmount = parseRaw(requirements.amount)
  if (token === undefined || payTo === undefined || typeof rawAmount !== 'bigint') return 'invalid_payment_requirements'
  return { network, token, rawAmount, payTo }
}

function readPayload(cursor: Cursor, scheme: 'exact' | 'upto'): Permit2Payment['payload'] {
  const authorization = member(cursor, 'permit2Authorization')
  const permitted = member(authorization, 'permitted')
  const witness = member(authorization, 'witness')
  return {
    signature: text(cursor, 'signature', signatureTextMax),
    permit2Authorization: {
      from: address(authorization, 'from'),
      permitted: { token: address(permitted, 'token'), amount: rawAmount(permitted, 'amount') },
      spender: address(authorization, 'spender'),
      nonce: rawAmount(authorization, 'nonce'),
      deadline: rawAmount(authorization, 'deadline'),
      witness: {
        to: address(witness, 'to'),
        ...(scheme === 'upto' ? { facilitator: address(witness, 'facilitator') } : {}),
        validAfter: rawAmount(witness, 'validAfter'),
      },
    },
  }
}

function refuse(reason: Reason, path: string, message: string): Parsed<never> {
  return { ok: false, fault: { reason, path, message } }
}
