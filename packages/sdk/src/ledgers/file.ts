import { randomBytes } from 'node:crypto'
import { must } from '../check.ts'
import { type Budget, emptyBudget } from '../pay/budget.ts'
import type { Ledger, ReservationRequest, ReservationVerdict, SignedCredential } from '../pay/ledger.ts'
import { releasedError } from '../pay/memory-ledger.ts'
import { type Journal, journalOf } from './journal.ts'

/** A step of a payment, as one line of the journal. */
type Step =
  | { readonly step: 'reserve'; readonly request: ReservationRequest }
  | { readonly step: 'signed'; readonly id: string; readonly credential: SignedCredential }
  | { readonly step: 'spent' | 'release'; readonly id: string }

type Verdict = ReservationVerdict | boolean | undefined

/** The journal as read up to some line, with the budget after that line. */
interface OpenBudget {
  readonly journal: Journal
  readonly budget: Budget
  /** The verdict on the line that this process appends. */
  readonly own: { line: string; verdict: Verdict }
}

const version = 1

/**
 * Returns a ledger in a file, for one machine. Processes that use the same file share one budget, and the file keeps
 * the spending after they end. The order of its lines decides which payments fit the budget, so that processes cannot
 * exceed it together. The file must be on a local disk. It contains credentials, is readable by its owner only, and
 * grows by about 2 KB per payment.
 *
 * @example
 * import { fileLedger } from '@purser/sdk/ledgers'
 * import { createPayingFetch, type Signer } from '@purser/sdk/pay'
 *
 * export function agentFetch(signer: Signer) {
 *   const ledger = fileLedger('./agent-budget.jsonl')
 *   return createPayingFetch({ signer, ledger, limits: { perCall: '0.05', perDay: '5' } })
 * }
 */
export function fileLedger(file: string): Ledger {
  must(
    typeof file === 'string' && file !== '',
    'file',
    file,
    'Give the path of a file, such as "./agent-budget.jsonl".',
  )
  const inTurn = turnsOf(() => openBudget(file))
  const write = (step: Step) => inTurn((open) => append(open, step))
  const read = <T>(look: (budget: Budget) => T) =>
    inTurn(({ journal, budget }) => journal.read().then(() => look(budget)))
  return {
    reserve: async (request) => {
      const verdict = await write({ step: 'reserve', request })
      if (typeof verdict === 'object') return verdict
      throw new Error(`${file} lacks a reservation that was written.`)
    },
    signed: async (id, credential) => {
      if ((await write({ step: 'signed', id, credential })) !== true) throw releasedError(id)
    },
    spent: async (id) => {
      await write({ step: 'spent', id })
    },
    release: async (id) => {
      await write({ step: 'release', id })
    },
    find: (purchase) => read((budget) => budget.find(purchase)),
    unfinished: () => read((budget) => budget.unfinished()),
  }
}

function openBudget(file: string): OpenBudget {
  const budget = emptyBudget()
  const own: OpenBudget['own'] = { line: '', verdict: undefined }
  const journal = journalOf(file, (text) => {
    const read = stepOf(text, file)
    if (read === undefined) return
    const verdict = take(budget, read.step)
    if (read.line === own.line) own.verdict = verdict
  })
  return { journal, budget, own }
}

async function append({ journal, own }: OpenBudget, step: Step): Promise<Verdict> {
  own.line = randomBytes(12).toString('hex')
  own.verdict = undefined
  await journal.append(JSON.stringify({ version, line: own.line, ...step }))
  return own.verdict
}

/** Gives the budget to one caller at a time. After a failure the file is read again from the start. */
function turnsOf(open: () => OpenBudget) {
  let budget: OpenBudget | undefined
  let before: Promise<unknown> = Promise.resolve()
  return <T>(work: (budget: OpenBudget) => Promise<T>): Promise<T> => {
    const turn = before.then(() => {
      budget ??= open()
      return work(budget)
    })
    before = turn.catch(() => {
      budget = undefined
    })
    return turn
  }
}

function take(budget: Budget, step: Step): Verdict {
  if (step.step === 'reserve') return budget.reserve(step.request)
  if (step.step === 'signed') return budget.signed(step.id, step.credential)
  budget[step.step](step.id)
  return undefined
}

/**
 * Parses a line of the journal. Returns undefined for a line that a crash truncated: it is not JSON, and no caller got
 * a verdict on it. Throws for a line of another version.
 */
function stepOf(text: string, file: string): { readonly line: string; readonly step: Step } | undefined {
  let read: { readonly version: unknown; readonly line: string } & Step
  try {
    read = JSON.parse(text)
  } catch {
    return undefined
  }
  if (read?.version !== version) throw new Error(`${file} has a line that this version of the SDK cannot read.`)
  const { version: _, line, ...step } = read
  return { line, step }
}
