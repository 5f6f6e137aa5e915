import { z } from 'zod'
import { Email } from '../features/organisations/index.ts'
import { hasAccount, makeSignInLink } from '../features/people/index.ts'
import { auditOperator } from '../platform/audit.ts'
import type { Queryable, Tx } from '../platform/db/db.ts'
import { type Command, command, type Operator } from './command.ts'

const withoutBaseUrl = 'set BASE_URL as for purser serve: a sign-in link leads there'

/** Makes a one-time sign-in link for an account's address and prints it. */
export const signInLink: Command = command({
  name: 'sign-in-link',
  summary: 'Make a link that signs a person in, once, within ten minutes.',
  options: { email: 'e-mail address of the account' },
  schema: z.strictObject({ email: Email }),
  run: (operator, { email }) =>
    operator.db.tx(async (tx) => {
      const { baseUrl } = operator
      if (baseUrl === undefined) return { lines: [withoutBaseUrl], json: { error: withoutBaseUrl }, exitCode: 1 }
      if (!(await hasAccount(tx, email))) {
        const reason = `no account has the address ${email}: make an organisation for it, or invite it to one`
        return { lines: [reason], json: { error: reason }, exitCode: 1 }
      }
      const url = await makeLink(operator, tx, { email, baseUrl })
      return { lines: [url, 'It works once, within ten minutes.'], json: { signInUrl: url }, exitCode: 0 }
    }),
})

/** A link for the owner of a new organisation; undefined where BASE_URL is not set. */
export async function ownersLink(operator: Operator, tx: Tx, email: string): Promise<string | undefined> {
  const { baseUrl } = operator
  return baseUrl === undefined ? undefined : makeLink(operator, tx, { email, baseUrl })
}

async function makeLink(
  operator: Operator,
  tx: Tx & Queryable,
  { email, baseUrl }: { readonly email: string; readonly baseUrl: string },
): Promise<string> {
  await auditOperator(operator, tx, { action: 'account.signInLink', details: { email } })
  return makeSignInLink(operator, tx, { email, baseUrl })
}
