import type { Address } from '../address.ts'
import { address, type Cursor, isObject, note, optionalText, rawAmount, type Trouble } from '../x402/fields.ts'
import type { JsonObject } from '../x402/messages.ts'

/** The broadcaster of the transaction of a Tempo payment: the payer (`push`) or the server (`pull`). */
export type TempoChargeMode = 'pull' | 'push'

/**
 * The request of a `tempo/charge` challenge. `amount` is in the token's smallest unit, `currency` a TIP-20 token. With
 * `feePayer` the server pays the fee and accepts only signed transactions. Source: draft-tempo-charge-00; mppx 0.11
 * `tempo/Methods`.
 */
export type TempoChargeRequest = {
  readonly amount: string
  readonly currency: Address
  readonly recipient: Address
  readonly chainId: number
  readonly feePayer?: boolean | undefined
  readonly supportedModes?: readonly TempoChargeMode[] | undefined
  readonly description?: string | undefined
  readonly externalId?: string | undefined
}

/**
 * The request of an `evm/charge` challenge. It is paid by an EIP-3009 authorization, the only credential that official
 * clients sign. `amount` is in the token's smallest unit. Source: draft-evm-charge-00; mppx 0.11 `evm/Methods`, which
 * has `permit2Address` optional.
 */
export type EvmChargeRequest = {
  readonly amount: string
  readonly currency: Address
  readonly recipient: Address
  readonly chainId: number
  readonly decimals: number
  readonly description?: string | undefined
  readonly externalId?: string | undefined
}

/**
 * The `evm/charge` request of any server. It may accept other types of credentials in addition to `authorization`, or
 * instead of it.
 */
export type EvmChargeOffer = EvmChargeRequest & { readonly credentialTypes: readonly string[] }

const textLengthMax = 4_096
const listMax = 16
const decimalsMax = 255

/**
 * The wire form of a `tempo/charge` request, for `encodeMppJson`. It is the same for all challenges of a route, so
 * encode it once.
 *
 * @example
 * const charge = { amount: '10000', currency: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', recipient: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', chainId: 42431 }
 * parseTempoChargeRequest(tempoChargeRequest(charge))?.chainId // 42431
 */
export function tempoChargeRequest(request: TempoChargeRequest): JsonObject {
  const { amount, currency, recipient, chainId, feePayer, supportedModes } = request
  return {
    amount,
    currency,
    recipient,
    ...present({ description: request.description, externalId: request.externalId }),
    methodDetails: { chainId, ...present({ feePayer, supportedModes }) },
  }
}

/**
 * The wire form of an `evm/charge` request, for `encodeMppJson`; it accepts the credential type `authorization` only.
 *
 * @example
 * const charge = { amount: '10000', currency: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', recipient: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', chainId: 84532, decimals: 6 }
 * parseEvmChargeRequest(evmChargeRequest(charge))?.amount // '10000'
 */
export function evmChargeRequest(request: EvmChargeRequest): JsonObject {
  const { amount, currency, recipient, chainId, decimals } = request
  return {
    amount,
    currency,
    recipient,
    ...present({ description: request.description, externalId: request.externalId }),
    methodDetails: { chainId, credentialTypes: ['authorization'], decimals },
  }
}

/**
 * Reads a `tempo/charge` request. Returns `undefined` if it has splits or a memo of its own, because a payment without
 * them would be wrong. Also returns `undefined` without a chain id, which mppx takes from the payer's configuration.
 *
 * @example
 * parseTempoChargeRequest({}) // undefined
 */
export function parseTempoChargeRequest(object: JsonObject): TempoChargeRequest | undefined {
  const details = detailsOf(object)
  if (details === undefined || !isAbsent(details.memo)) return undefined
  const { feePayer, supportedModes } = details
  if (!isAbsent(feePayer) && typeof feePayer !== 'boolean') return undefined
  if (!isAbsent(supportedModes) && !isModes(supportedModes)) return undefined
  const base = readBase(object, details)
  return base && { ...base, feePayer: feePayer ?? undefined, supportedModes: supportedModes ?? undefined }
}

/**
 * Reads an `evm/charge` request. `credentialTypes` is empty if the server names none; mppx does not pay then. Returns
 * `undefined` if the request has splits, and without `decimals`, which are needed to show the amount.
 *
 * @example
 * parseEvmChargeRequest({}) // undefined
 */
export function parseEvmChargeRequest(object: JsonObject): EvmChargeOffer | undefined {
  const details = detailsOf(object)
  const base = details && readBase(object, details)
  if (details === undefined || base === undefined) return undefined
  const { decimals, credentialTypes = [] } = details
  if (!isInteger(decimals) || decimals > decimalsMax || !isTexts(credentialTypes)) return undefined
  return { ...base, decimals, credentialTypes }
}

function readBase(object: JsonObject, details: JsonObject) {
  const { chainId } = details
  const trouble: Trouble = { first: undefined }
  const cursor: Cursor = { object, path: '', trouble }
  const base = {
    amount: rawAmount(cursor, 'amount'),
    currency: address(cursor, 'currency'),
    recipient: address(cursor, 'recipient'),
    chainId: isInteger(chainId) ? chainId : 0,
    description: optionalText(cursor, 'description', textLengthMax),
    externalId: optionalText(cursor, 'externalId', textLengthMax),
  }
  if (base.chainId === 0) note(trouble, '/methodDetails/chainId', 'must be a positive integer')
  return trouble.first === undefined ? base : undefined
}

function detailsOf(object: JsonObject): JsonObject | undefined {
  const details = object.methodDetails
  if (!isObject(details)) return undefined
  const { splits } = details
  return isAbsent(splits) || (Array.isArray(splits) && splits.length === 0) ? details : undefined
}

function isModes(value: unknown): value is readonly TempoChargeMode[] {
  return isTexts(value) && value.length > 0 && value.every((mode) => mode === 'pull' || mode === 'push')
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= listMax && value.every((item) => typeof item === 'string')
}

function isInteger(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null
}

/** Only the members that have a value: canonical JSON refuses `undefined`. */
function present(members: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}
