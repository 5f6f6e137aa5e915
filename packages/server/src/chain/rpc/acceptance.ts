import { isProblem } from '../../platform/errors.ts'
import { fail } from '../errors.ts'
import type { Voter } from './rpc.ts'

/** How a majority judges a payment: the answers of the nodes that accept it, or the answer of one that does not. */
export type Acceptance<T> =
  | { readonly isAccepted: true; readonly answers: readonly T[] }
  | { readonly isAccepted: false; readonly answer: T }

export interface Electorate {
  readonly voters: readonly Voter[]
  readonly needed: number
}

/** The healthy nodes if they suffice, or all but those of another chain, and how many make a strict majority of those configured. */
export function electorateOf(all: readonly Voter[]): Electorate {
  const needed = Math.floor(all.length / 2) + 1
  const healthy = all.filter(({ node: { state } }) => state === 'up' || state === 'unchecked')
  const voters = healthy.length >= needed ? healthy : all.filter(({ node: { state } }) => state !== 'refused')
  return { voters, needed }
}

/**
 * Queries all nodes at once, as of their own latest blocks, and resolves when `needed` of them accept or refuse. Nodes may differ by a block, so a dissenting
 * one is not suspended, and a payer whose money has just arrived is accepted once a majority has it. Throws `chain-unavailable` if too few answer.
 */
export function requestAcceptance<T>(
  { voters, needed }: Electorate,
  query: (voter: Voter) => Promise<T>,
  isAccepting: (answer: T) => boolean,
): Promise<Acceptance<T>> {
  const [accepting, refusing]: [T[], T[]] = [[], []]
  return new Promise((resolve, reject) => {
    const requests = voters.map(async (voter) => {
      const answer = await query(voter).catch((error: unknown) => {
        if (!isProblem(error, 'chain-unavailable')) throw error
        return undefined
      })
      if (answer === undefined) return
      if (isAccepting(answer)) accepting.push(answer)
      else refusing.push(answer)
      if (accepting.length >= needed) resolve({ isAccepted: true, answers: [...accepting] })
      // A majority that refuses waits for no slow node either.
      else if (refusing.length >= needed) resolve({ isAccepted: false, answer })
    })
    Promise.all(requests).then(() => {
      const [answer] = refusing
      const isEnough = accepting.length + refusing.length >= needed
      if (isEnough && answer !== undefined) resolve({ isAccepted: false, answer })
      else reject(fail('chain-unavailable', {}, new Error('too few nodes judge a payment')))
    }, reject)
  })
}
