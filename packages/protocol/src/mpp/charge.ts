import type { Address } from '../address.ts'
import { address, type Cursor, isObject, note, optionalText, rawAmount, type Trouble } from '../x402/fields.ts'
import type { JsonObject } from '../x402/messages.ts'

/** How a Tempo payment may be shown: the payer sends the transaction itself (push) or lets the server send it (pull). */
export type TempoChargeMode = 'pull' | 'push'

/**
 * What `tempo/charge` asks for. `amount` is in the token's smallest unit, `currency` a TIP-20 token. With `feePayer` the server
 * pays the fee and takes only signed transactions. Source: draft-tempo-charge-00; mppx 0.11 `tempo/Methods`.
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
 * What `evm/charge` asks for; paid by an EIP-3009 authorization alone, since that is what official clients sign. `amount` is in
 * the token's smallest unit. Source: draft-evm-charge-00; mppx 0.11 `evm/Methods`, which has `permit2Address` optional.
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

/** An `evm/charge` as a server may put it: it can take other credentials beside, or instead of, `authorization`. */
export type EvmChargeOffer = EvmChargeRequest & { readonly credentialTypes: readonly string[] }

const textLengthMax = 4_096
const listMax = 16
const decimalsMax = 255

/**
 * The wire form of a `tempo/charge` request, for `encodeMppJson`. Encode it once per route: it holds nothing of one challenge.
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
 * The wire form of an `evm/charge` request, for `encodeMppJson`; it asks for an `authorization` and nothing else.
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
 * Reads a `tempo/charge` request. One that names splits or a memo of its own answers `undefined`: who pays it without them pays
 * wrongly. So does one without a chain, which mppx leaves to the payer's configuration.
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
 * Reads an `evm/charge` request; `credentialTypes` is empty where the server names none, and then mppx does not pay. One with
 * splits answers `undefined`, and so does one without `decimals`, by which the amount could not be shown to anybody.
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
