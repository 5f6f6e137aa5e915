import {
  type Address,
  encodeNonceBitmap,
  encodePermit2Settle,
  type Hex,
  type Permit2Transfer,
  permit2Proxies,
} from '@purser/protocol'
import { keccak256, toHex } from 'viem'
import type { Circumstances, Rules, TokenState } from './token.ts'
import { accountIn, numberIn, selectorOf, signatureOf, wordOf } from './words.ts'

/** Permit2 and the x402 proxies, as far as payments use them. */
export type Permit = Permit2Transfer

const nobody: Address = `0x${'0'.repeat(40)}`
const settleSelector = (scheme: Permit['scheme']): string =>
  selectorOf(
    encodePermit2Settle({
      transfer: {
        scheme,
        spender: nobody,
        owner: nobody,
        token: nobody,
        permitted: 0n,
        nonce: 0n,
        deadline: 0n,
        witness: { to: nobody, facilitator: nobody, validAfter: 0n },
      },
      amount: 0n,
      signature: '0x',
      permit2612: undefined,
    }),
  )
const selectors = { exact: settleSelector('exact'), upto: settleSelector('upto') } as const
const nonceBitmap = selectorOf(encodeNonceBitmap(nobody, 0n))
const errorOf = (text: string): Hex => keccak256(toHex(text)).slice(0, 10) as Hex

export const permitKey = (owner: string, nonce: bigint): string => `${owner} ${nonce}`.toLowerCase()

/** A key of the signed terms, and so of the money that one permit may move. */
export function permitText({ scheme, owner, token, permitted, nonce, deadline, witness }: Permit): string {
  const { to, facilitator = 'nobody' } = witness
  return ['permit', scheme, owner, token, permitted, nonce, deadline, to, facilitator].join(' ').toLowerCase()
}

/** The call of a proxy; undefined for any other call. */
export function decodePermit(target: string, data: string) {
  const scheme = (['exact', 'upto'] as const).find((one) => permit2Proxies[one].toLowerCase() === target.toLowerCase())
  if (scheme === undefined || selectorOf(data) !== selectors[scheme]) return undefined
  // After the four words of the permit: for `upto` the amount, then owner and receiver, for `upto` the facilitator, and
  // validAfter.
  const owner = scheme === 'upto' ? 5 : 4
  const after = owner + (scheme === 'upto' ? 3 : 2)
  const permit: Permit = {
    scheme,
    spender: permit2Proxies[scheme],
    owner: accountIn(data, owner),
    token: accountIn(data, 0),
    permitted: numberIn(data, 1),
    nonce: numberIn(data, 2),
    deadline: numberIn(data, 3),
    witness: {
      to: accountIn(data, owner + 1),
      facilitator: scheme === 'upto' ? accountIn(data, owner + 2) : undefined,
      validAfter: numberIn(data, after),
    },
  }
  const amount = scheme === 'upto' ? numberIn(data, 4) : permit.permitted
  return { kind: 'permit', permit, amount, signature: `0x${wordOf(data, after + 3)}` } as const
}

interface PermitCall {
  readonly permit: Permit
  readonly amount: bigint
  readonly signature: string
}

/** The error with which the proxy or Permit2 refuses; undefined where they accept. */
export function permitRefusal(
  { signed }: Rules,
  { permits }: TokenState,
  { permit, amount, signature }: PermitCall,
  { now, sender }: Circumstances,
): Hex | undefined {
  const { scheme, owner, nonce, deadline, permitted, witness } = permit
  if (scheme === 'upto' && sender.toLowerCase() !== witness.facilitator?.toLowerCase())
    return errorOf('UnauthorizedFacilitator()')
  if (amount > permitted) return errorOf('AmountExceedsPermitted()')
  if (now > deadline) return errorOf('SignatureExpired(uint256)')
  if (permits.has(permitKey(owner, nonce))) return errorOf('InvalidNonce()')
  const text = permitText(permit)
  return signature === (signed.get(text) ?? signatureOf(text)) ? undefined : errorOf('InvalidSigner()')
}

/** The bitmap of Permit2's nonces; undefined for another read. */
export function readPermits({ permits }: TokenState, data: string): Hex | undefined {
  if (selectorOf(data) !== nonceBitmap) return undefined
  const [owner, word] = [accountIn(data, 0).toLowerCase(), numberIn(data, 1)]
  let bitmap = 0n
  for (const key of permits) {
    const [account, nonce = '0'] = key.split(' ')
    if (account === owner && BigInt(nonce) >> 8n === word) bitmap |= 1n << (BigInt(nonce) & 255n)
  }
  return `0x${bitmap.toString(16).padStart(64, '0')}`
}
