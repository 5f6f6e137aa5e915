import { z } from 'zod'
import type { Problem } from '../errors.ts'
import { failPlatform } from '../errors.ts'
import { named } from '../named.ts'

const example = {
  type: 'https://api.example.com/problems/validation-error',
  title: 'Validation Error',
  status: 422,
  detail: 'The request has faults; errors lists all of them.',
  requestId: 'req_01h455vb4pex5vsknk084sn02q',
  errors: [{ path: '/amount', message: 'must be text' }],
}

/** RFC 9457 problem record. Modules add members of their own. */
export const ProblemRecord = z
  .looseObject({
    type: z.url().describe('Address of a page about the error; its last part is the code.'),
    title: z.string().describe('The error in a few words.'),
    status: z.int().describe('The HTTP status.'),
    detail: z.string().describe('What is wrong, and what to do about it.'),
    requestId: z.string().describe('Id of the request, as in X-Request-Id.'),
    errors: z
      .array(
        z.object({
          path: z.string().describe('Position of the fault: a JSON Pointer (RFC 6901).'),
          message: z.string().describe('What is wrong there.'),
        }),
      )
      .optional()
      .meta({ description: 'All faults of the request; path is a JSON Pointer.' }),
    balances: z
      .array(
        z.object({
          token: z.string().describe('Symbol of the token.'),
          required: z.string().describe('Amount that is needed.'),
          available: z.string().describe('Amount that is available.'),
          held: z
            .string()
            .optional()
            .meta({ description: 'Additional amount that waits until its sender is screened.' }),
        }),
      )
      .optional()
      .meta({ description: '`insufficient-balance`: the missing amounts, in whole tokens.' }),
    reason: z.string().nullable().optional().meta({ description: "The payment protocol's own code." }),
    limit: z.int().optional().describe('Limit errors: what the plan allows.'),
    current: z.int().optional().describe('For limit errors: the current usage.'),
    upgradeUrl: z.url().optional().describe('Limit errors: the billing page of the dashboard.'),
  })
  .meta({ example })

export const problemContentType = 'application/problem+json; charset=utf-8'

/** The record that the caller sees: it contains nothing of the cause. */
export function problemRecord(problem: Problem, baseUrl: string, requestId: string): Record<string, unknown> {
  return {
    type: `${baseUrl}/problems/${problem.code}`,
    title: problem.entry.title,
    status: problem.entry.status,
    detail: problem.entry.detail,
    ...problem.members,
    requestId,
  }
}

/** The code of the problem in a response; null if it is none. */
export function problemCodeOf(response: {
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}): string | null {
  const { headers, body } = response
  if (headers['content-type'] !== problemContentType) return null
  const text = body instanceof Uint8Array ? new TextDecoder().decode(body) : String(body)
  const { type } = ProblemRecord.parse(JSON.parse(text))
  return type.slice(type.lastIndexOf('/') + 1)
}

interface Fault {
  readonly path: string
  readonly message: string
}

/** One 422 that lists all faults. If all faults have schemas with the same problem code (`params.problem`), the record has that code. */
export function validationProblem(issues: readonly z.core.$ZodIssue[]): Problem {
  const errors = firstFaults(issues)
  const codes = new Set(issues.map((issue) => (issue.code === 'custom' ? issue.params?.problem : undefined)))
  const only = codes.size === 1 ? [...codes][0] : undefined
  return failPlatform(only === 'address-format-invalid' ? 'address-format-invalid' : 'validation-error', { errors })
}

/** Most faults that are listed, and written at all. */
export const faultsMax = 100

function firstFaults(issues: readonly z.core.$ZodIssue[]): Fault[] {
  const faults: Fault[] = []
  for (const issue of issues) {
    if (faults.length >= faultsMax) break
    faults.push(...faultsOf(issue).slice(0, faultsMax - faults.length))
  }
  return faults
}

function faultsOf(issue: z.core.$ZodIssue): Fault[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys
      .slice(0, faultsMax)
      .map((key) => ({ path: pointer([...issue.path, key]), message: 'is not a field of this request' }))
  }
  return [{ path: pointer(issue.path), message: messageOf(issue) }]
}

/** The message of a fault. One of a value that fits no alternative of a union lists what each alternative requires of the value. */
function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'invalid_union' || issue.message !== 'Invalid input') return issue.message
  const required = issue.errors.flatMap((of) =>
    of.filter(({ path }) => path.length === 0).map(({ message }) => message),
  )
  return required.length === 0 ? issue.message : [...new Set(required)].join(', or ')
}

/** RFC 6901. */
function pointer(path: readonly PropertyKey[]): string {
  return path.map((part) => `/${String(part).slice(0, 128).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

named({ Problem: ProblemRecord })
