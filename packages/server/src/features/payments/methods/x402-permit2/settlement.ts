import type { Permit2Verdict } from '@purser/protocol'
import type { StoredPermit2 } from '../../store.ts'

type GoodVerdict = Extract<Permit2Verdict, { ok: true }>

/**
 * Returns the row's settlement of a verified payment. Until settlement is requested, the whole permitted amount counts as
 * charged.
 */
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
