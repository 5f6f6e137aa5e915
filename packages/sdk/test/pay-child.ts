import { randomBytes } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import pg from 'pg'
import { fileLedger, postgresLedger } from '../src/ledgers/index.ts'
import { createPayingFetch, type Ledger, PaymentError } from '../src/pay/index.ts'

/** A process that pays, and kills itself beside one step of one of its payments. */
export interface PayJob {
  readonly ledger: { readonly file: string } | { readonly databaseUrl: string; readonly budget: string }
  readonly url: string
  readonly perDay: string
  readonly purchases: readonly string[]
  /** One line is appended for each signature. */
  readonly signatures: string
  readonly cut?: { readonly when: 'before' | 'after'; readonly step: PayStep; readonly purchase: string } | undefined
}

export type PayStep = 'reserve' | 'sign' | 'signed' | 'send' | 'spent'

const job: PayJob = JSON.parse(process.argv[2] ?? '')
let purchase = ''

function die(when: 'before' | 'after', step: PayStep): void {
  const { cut } = job
  if (cut?.when === when && cut.step === step && cut.purchase === purchase) process.kill(process.pid, 'SIGKILL')
}

async function beside<T>(step: PayStep, work: () => Promise<T>): Promise<T> {
  die('before', step)
  const result = await work()
  die('after', step)
  return result
}

const ledger: Ledger =
  'file' in job.ledger
    ? fileLedger(job.ledger.file)
    : postgresLedger({
        database: new pg.Pool({ connectionString: job.ledger.databaseUrl, max: 1 }),
        budget: job.ledger.budget,
      })

const pay = createPayingFetch({
  signer: {
    address: '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf',
    signTypedData: () =>
      beside('sign', async () => {
        appendFileSync(job.signatures, `${purchase}\n`)
        return `0x${randomBytes(65).toString('hex')}` as const
      }),
  },
  limits: { perCall: '1', perDay: job.perDay },
  ledger: {
    ...ledger,
    reserve: (request) => beside('reserve', () => ledger.reserve(request)),
    signed: (id, credential) => beside('signed', () => ledger.signed(id, credential)),
    spent: (id) => beside('spent', () => ledger.spent(id)),
  },
  fetch: (input, init) => {
    const isPaid = new Headers(init?.headers).has('payment-signature')
    return isPaid ? beside('send', () => fetch(input, init)) : fetch(input, init)
  },
})

const outcomes: Record<string, string> = {}
for (purchase of job.purchases) {
  try {
    outcomes[purchase] = await (await pay(job.url, { purchase })).text()
  } catch (error) {
    outcomes[purchase] = error instanceof PaymentError ? error.code : String(error)
  }
}
process.stdout.write(JSON.stringify(outcomes), () => process.exit(0))
