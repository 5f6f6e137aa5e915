import { hash } from 'node:crypto'
import { canonicalJson, type JsonObject } from '@purser/protocol'
import { refused } from './credential.ts'
import { fail } from './errors.ts'
import { findFingerprint } from './payment-identifier-store.ts'
import type { Ctx } from './ports.ts'

/** The extension's key in `extensions` (x402 extension payment-identifier). */
export const paymentIdentifierKey = 'payment-identifier'

const pattern = /^[A-Za-z0-9_-]{16,128}$/

const extension: JsonObject = {
  info: { required: false },
  schema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      required: { type: 'boolean' },
      id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[a-zA-Z0-9_-]+$' },
    },
    required: ['required'],
  },
}

/** Returns the extension by which a version 2 challenge lets clients name their payments. Source: @x402/extensions 2.27.0. */
export function paymentIdentifierExtension(): JsonObject {
  return { [paymentIdentifierKey]: extension }
}

/** The columns of a payment that store its payment identifier. */
export interface PaymentName {
  readonly paymentIdentifier: string | null
  readonly paymentFingerprint: string | null
}

/**
 * Reads the payment identifier, and refuses one that already names other signed parts: 409 `payment-identifier-conflict`. The
 * identifier grants nothing by itself: the same payment under the same identifier is still used. Throws the protocol's
 * `invalid_payload` if it has another shape, or is missing where the challenge requires one.
 */
export async function namePayment(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  extensions: JsonObject | undefined,
  fingerprint: string,
): Promise<PaymentName> {
  const paymentIdentifier = identifierIn(extensions)
  if (paymentIdentifier === undefined) return { paymentIdentifier: null, paymentFingerprint: fingerprint }
  const known = await findFingerprint(ctx.db, ctx.tenant, paymentIdentifier)
  if (known !== undefined && known !== fingerprint) throw fail('payment-identifier-conflict')
  return { paymentIdentifier, paymentFingerprint: fingerprint }
}

/** Returns SHA-256 over the canonical JSON of what the payer signed and its signature, in hex. */
export function fingerprintOf(signedParts: unknown): string {
  return hash('sha256', canonicalJson(signedParts), 'hex')
}

function identifierIn(extensions: JsonObject | undefined): string | undefined {
  const info = memberOf(memberOf(extensions, paymentIdentifierKey), 'info')
  const id = memberOf(info, 'id')
  if (id === undefined || id === null) {
    if (memberOf(info, 'required') !== true) return undefined
    throw refused('invalid_payload', { message: 'a payment identifier is required and none was given' })
  }
  if (typeof id === 'string' && pattern.test(id)) return id
  throw refused('invalid_payload', {
    message: 'the payment identifier must be 16 to 128 letters, digits, hyphens or underscores',
  })
}

/** Returns the payment's identifier if it has a valid form. */
export function shownIdentifier(extensions: JsonObject | undefined): string | undefined {
  const id = memberOf(memberOf(memberOf(extensions, paymentIdentifierKey), 'info'), 'id')
  return typeof id === 'string' && pattern.test(id) ? id : undefined
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
