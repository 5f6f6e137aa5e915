import type { Operation } from '../../operation.ts'
import { errorMeanings, type Meaning } from '../error-catalogue.ts'
import type { Guide } from './guides.ts'

/** The page of each error code, as a guide with the name `errors/<code>`: the detail, the causes, the fix, and the operations that return it. */
export function errorGuides(operations: readonly Operation[]): Guide[] {
  const byCode = Map.groupBy(errorMeanings(operations), ({ code }) => code)
  return [...byCode].map(([code, meanings]) => {
    const title = meanings[0]?.entry.title ?? code
    const summary = meanings.map(({ entry }) => entry.detail).join(' ')
    return { name: `errors/${code}`, title, summary, markdown: markdownOf({ code, title, meanings, operations }) }
  })
}

interface ErrorPage {
  readonly code: string
  readonly title: string
  readonly meanings: readonly Meaning[]
  readonly operations: readonly Operation[]
}

function markdownOf({ code, title, meanings, operations }: ErrorPage): string {
  const [only, ...others] = meanings
  const parts =
    only !== undefined && others.length === 0
      ? [`\`${code}\` · HTTP ${only.entry.status}`, ...sectionsOf(only, '##', operations)]
      : [
          `\`${code}\` has ${meanings.length} meanings: \`status\` and \`detail\` of the response say which.`,
          ...meanings
            .toSorted((left, right) => left.entry.status - right.entry.status)
            .flatMap((one) => [
              `## HTTP ${one.entry.status} from ${tagsOf(one)}`,
              ...sectionsOf(one, '###', operations),
            ]),
        ]
  const end =
    'The response has a `requestId`, also in the header `X-Request-Id`: name it when you report a problem. [All errors](/docs/errors)'
  return `${[`# ${title}`, ...parts, end].join('\n\n')}\n`
}

/** The tags of the operations, as the API reference has them. */
function tagsOf({ operations }: Meaning): string {
  return [...new Set(operations.map(({ id }) => id.split('.')[0]))].join(', ')
}

function sectionsOf({ entry, operations: members }: Meaning, heading: string, all: readonly Operation[]): string[] {
  return [
    entry.detail,
    `${heading} Why`,
    entry.causes.map((cause) => `- ${cause}`).join('\n'),
    `${heading} What to do`,
    entry.fix,
    ...(members.length === 0 ? [] : [`${heading} Operations`, operationsText(members, all)]),
  ]
}

/** The groups of operations that share errors; each has a name, so that its members need no list. */
const groups: readonly (readonly [name: string, has: (operation: Operation) => boolean])[] = [
  ['Any operation', () => true],
  ['Any operation except those with GET', ({ method }) => method !== 'GET'],
  ['Any operation with POST', ({ method }) => method === 'POST'],
  ['Any operation with a JSON body', ({ input }) => input !== undefined],
  ['Any operation with a name in its path', ({ path }) => path.includes('{')],
]

function operationsText(members: readonly Operation[], all: readonly Operation[]): string {
  const group = groups.find(([, has]) => {
    const expected = all.filter(has)
    return expected.length === members.length && expected.every((one) => members.includes(one))
  })
  if (group !== undefined) return `${group[0]} may answer with it.`
  return members
    .map(({ id, method, path }) => `- [\`${id}\`](/docs/reference/plain#${id}): \`${method} ${path}\``)
    .join('\n')
}
