import type { SealedItem, Verdict } from '@purser/sdk/seal'
import { type Args, CommandError, type Outcome } from '../command.ts'

type Good = Extract<Verdict, { readonly ok: true }>

const itemUnknown = {
  ok: false,
  fault: 'item-unknown',
  at: '',
  detail: 'The proof has no item of that id.',
  claimedKid: undefined,
} as const

/** The outcome of a valid proof: the signed statement, and the item if one was checked. */
export function good({ kid, statement }: Good, { options }: Args, item?: SealedItem): Outcome {
  const contentChecked = options.file !== undefined
  const rows: readonly (readonly [string, string])[] = [
    ['vault', statement.vaultId],
    ['sealed', statement.sealedAt],
    ['items', String(statement.treeSize)],
    ['manifest', statement.manifestHash],
    ['Merkle root', statement.merkleRoot],
    ['signed with', `${kid}, a key of ${options.keys ?? options.from}`],
    ...(item === undefined ? [] : itemRows(item, options.file)),
  ]
  return {
    exitCode: 0,
    lines: ['The proof is valid.', '', ...rows.map(([name, value]) => `  ${name.padEnd(11)}  ${value}`)],
    json: { ok: true, kid, statement, ...(item !== undefined && { item, contentChecked }) },
  }
}

/**
 * The outcome of an invalid proof: error code and detail. Throws a `CommandError` if the keys are unusable, which says nothing
 * about the proof.
 */
export function bad(verdict: Verdict | 'item-unknown', { options }: Args, item?: SealedItem): Outcome {
  const refusal = verdict === 'item-unknown' ? itemUnknown : verdict
  if (refusal.ok) throw new TypeError('a valid proof cannot be reported as invalid')
  if (refusal.fault === 'keys-unusable') throw new CommandError(`${options.keys ?? options.from}: ${refusal.detail}`)
  const { fault, at, detail, claimedKid } = refusal
  const isDocument = fault === 'content-differs' && item?.kind === 'document'
  const where = at === '' ? [] : [`At ${at}.`]
  const claimed = claimedKid === undefined ? [] : [`The statement says that it was signed with ${claimedKid}.`]
  const hint = isDocument ? ['For a document, the file must contain only what the API calls `data`.'] : []
  return {
    exitCode: 1,
    lines: [`The proof is invalid: ${fault}`, detail, ...where, ...claimed, ...hint],
    json: { ok: false, fault, at, detail, claimedKid },
  }
}

function itemRows(item: SealedItem, file: string | undefined): readonly (readonly [string, string])[] {
  const checked = file === undefined ? 'not checked; use --file to check it' : `${file} matches`
  return [
    ['item', item.id],
    ['name', item.name],
    ['size', `${item.size} bytes`],
    ['SHA-256', item.sha256],
    ['content', checked],
  ]
}
