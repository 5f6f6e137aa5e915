import {
  type Address,
  bytesToHex,
  type Call3,
  decodeAuthorizationUsedLog,
  decodeTransferLog,
  type Eip712Domain,
  encodeAggregate3,
  encodeTransferWithAuthorization,
  type Hex,
  hexToBytes,
  multicall3Address,
  type Network,
  type TokenInfo,
  type TransferAuthorization,
  type TransferSignature,
  tokenByAddress,
} from '@purser/protocol'
import type { WalletSigner } from '../../custody/wallet-keys.ts'
import { unixSeconds } from '../../platform/clock.ts'

/** Gas that one authorisation costs the operator at most; the day's budget is charged with it. */
export const gasOfAuthorisation = 100_000n
const gasOfTransaction = 60_000n

/** Money that a child lets anybody move to one place, once (EIP-3009): all of it stood in a row before anybody was asked to sign. */
export interface Authorised {
  readonly asset: Address
  readonly fromAddress: Address
  readonly toAddress: Address
  /** In the token's smallest unit. */
  readonly rawAmount: bigint
  /** 32 bytes. */
  readonly nonce: Uint8Array
  readonly validBefore: Date
}

/** One that the child has signed: r, s and v in 65 bytes. */
export type SignedAuthorised = Authorised & { readonly signature: Uint8Array }

/** Whether children's authorisations of this token are brought to this chain by the settler. */
export function takesAuthorisations(network: Network, token: TokenInfo): boolean {
  return network.settlesEip3009 && token.eip3009 && token.eip712 !== null
}

/** What a child signs. */
export function authorizationOf(transfer: Authorised): TransferAuthorization {
  return {
    from: transfer.fromAddress,
    to: transfer.toAddress,
    value: transfer.rawAmount,
    validAfter: 0n,
    validBefore: BigInt(unixSeconds(transfer.validBefore)),
    nonce: bytesToHex(transfer.nonce),
  }
}

/** Has the child's key sign. Signing twice gives away nothing: the nonce stands in the row, and a token takes it once. */
export async function signAuthorised(
  signer: Pick<WalletSigner, 'signTransferWithAuthorization'>,
  network: Network,
  transfer: Authorised,
): Promise<Uint8Array> {
  const domain = domainOf(network, transfer.asset)
  return hexToBytes(await signer.signTransferWithAuthorization(domain, authorizationOf(transfer)))
}

/** The domain under which the transfer's token checks signatures. */
function domainOf(network: Network, asset: Address): Eip712Domain {
  const eip712 = tokenByAddress(network, asset)?.eip712
  if (eip712 === undefined || eip712 === null) throw new Error(`${asset} on ${network.name} takes no authorisations`)
  return { ...eip712, chainId: network.chainId, verifyingContract: asset }
}

/** A stored signature of 65 bytes: r, s and v. */
export function signatureOf({ signature }: Pick<SignedAuthorised, 'signature'>): TransferSignature {
  const v = signature[64]
  if (v !== 27 && v !== 28) throw new Error('a stored signature has no v')
  return { kind: 'ecdsa', v, r: bytesToHex(signature.subarray(0, 32)), s: bytesToHex(signature.subarray(32, 64)) }
}

/**
 * The one transaction that carries these transfers; each may fail by itself. The gas limit is a sum of fixed budgets and not an
 * estimate, because an estimate of calls that may fail finds the gas at which they fail.
 */
export function authorisedCall(transfers: readonly SignedAuthorised[]): { to: Address; data: Hex; gasLimit: bigint } {
  const calls = transfers.map(callOf)
  const gasLimit = gasOfTransaction + gasOfAuthorisation * BigInt(transfers.length)
  return { to: multicall3Address, data: encodeAggregate3(calls), gasLimit }
}

function callOf(transfer: SignedAuthorised): Call3 {
  const callData = encodeTransferWithAuthorization(authorizationOf(transfer), signatureOf(transfer))
  return { target: transfer.asset, allowFailure: true, callData }
}

interface TokenLog {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
}

/**
 * What these logs show of a transfer: `moved`, the authorisation was used and its amount went where it was to; `used`, it was used and
 * the token does not tell of that amount; `nothing`.
 */
export function shownBy(logs: readonly TokenLog[]): (transfer: Authorised) => 'moved' | 'used' | 'nothing' {
  const seen = new Set(logs.flatMap((log) => factOf(log) ?? []))
  return ({ asset, fromAddress, toAddress, rawAmount, nonce }) => {
    if (!seen.has(fact('used', asset, fromAddress, bytesToHex(nonce)))) return 'nothing'
    return seen.has(fact('moved', asset, fromAddress, toAddress, rawAmount)) ? 'moved' : 'used'
  }
}

function factOf(log: TokenLog): string | undefined {
  const used = decodeAuthorizationUsedLog(log)
  if (used !== undefined) return fact('used', log.address, used.authorizer, used.nonce)
  const moved = decodeTransferLog(log)
  return moved === undefined ? undefined : fact('moved', log.address, moved.from, moved.to, moved.value)
}

function fact(...words: readonly (string | bigint)[]): string {
  return words.join(' ').toLowerCase()
}
