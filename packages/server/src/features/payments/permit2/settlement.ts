import type { Permit2Settlement, Permit2Transfer, Permit2Verdict } from '@purser/protocol'
import type { StoredPermit2 } from '../store.ts'

type GoodVerdict = Extract<Permit2Verdict, { ok: true }>

/** The signed transfer of a stored payment, as it was signed. */
export function transferOf(stored: StoredPermit2): Permit2Transfer {
  const { to, validAfter, facilitator } = stored.witness
  return {
    scheme: stored.scheme,
    spender: stored.spender,
    owner: stored.owner,
    token: stored.token,
    permitted: BigInt(stored.permitted),
    nonce: BigInt(stored.nonce),
    deadline: BigInt(stored.deadline),
    witness: { to, validAfter: BigInt(validAfter), facilitator: facilitator ?? undefined },
  }
}

/** What the settler sends to the proxy for a stored payment. */
export function settlementOf(stored: StoredPermit2): Permit2Settlement {
  const permit = stored.permit2612
  return {
    transfer: transferOf(stored),
    amount: BigInt(stored.charged),
    signature: stored.signature,
    permit2612:
      permit === null
        ? undefined
        : {
            value: BigInt(permit.value),
            deadline: BigInt(permit.deadline),
            v: permit.v === 27 ? 27 : 28,
            r: permit.r,
            s: permit.s,
          },
  }
}

/** The row's settlement of a judged payment. Until it is asked to settle, all that is permitted counts as charged. */
export function storedPermit2({ transfer, signature, permit2612 }: GoodVerdict): StoredPermit2 {
  const { scheme, spender, owner, token, witness } = transfer
  const permitted = transfer.permitted.toString()
  return {
    kind: 'permit2',
    scheme,
    spender,
    owner,
    token,
    permitted,
    charged: permitted,
    nonce: transfer.nonce.toString(),
    deadline: transfer.deadline.toString(),
    witness: {
      to: witness.to,
      validAfter: witness.validAfter.toString(),
      facilitator: witness.facilitator ?? null,
    },
    signature,
    permit2612:
      permit2612 === undefined
        ? null
        : { ...permit2612, value: permit2612.value.toString(), deadline: permit2612.deadline.toString() },
  }
}
