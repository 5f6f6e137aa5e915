import {
  type ApiDocument,
  type MediaTypes,
  type Operation,
  type Parameter,
  type Refused,
  resolved,
} from './document.ts'
import { samplesOf } from './samples.ts'

const introduction = `HTTP and JSON. Each request carries \`Authorization: Bearer <API key>\`; a key that begins with \`svc_test_sk_\` moves test money only.
What you send from this page is sent by your browser with the key that you type, which the page keeps until you leave it.

An error is a problem record (RFC 9457), whose \`type\` is the address of a page about its cause.

[Guides](/docs) · [Quick start](/docs/quick-start) · [All errors](/docs/errors) · [This reference without scripts](/docs/reference/plain)`

const eventsTag = 'event payloads'

/**
 * The document as Scalar shows it: titles for people, the errors of each operation at its responses, samples of our own clients, and the events
 * as a section of their own beside the operations of webhooks.
 */
export function forReaders(document: ApiDocument, origin: string): ApiDocument {
  const paths = mapped(document.paths, (methods) =>
    mapped(methods, (operation, method) => ({
      ...shown(document, operation, method),
      'x-codeSamples': samplesOf(document, operation, origin),
    })),
  )
  const webhooks = mapped(document.webhooks, ({ $ref, post }, type) => {
    const parameters = $ref === undefined ? [] : resolved(document.components.pathItems, { $ref })?.parameters
    return { post: { ...post, parameters, summary: type, tags: [eventsTag] } }
  })
  const events = {
    name: eventsTag,
    description: 'What the service delivers to webhooks, one entry for each type of event.',
  }
  // Scalar links the licence to the page of another host.
  const { license: _license, ...info } = document.info
  return {
    ...document,
    info: { ...info, description: introduction },
    servers: [{ url: origin }],
    tags: [...document.tags, events].map((tag) => ({ ...tag, 'x-displayName': titleOf(tag.name) })),
    ...{ paths, webhooks },
  }
}

function mapped<T, R>(record: Readonly<Record<string, T>>, change: (value: T, key: string) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]))
}

function titleOf(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}

function shown(document: ApiDocument, operation: Operation, method: string): Operation {
  const { components, 'x-every-operation': ofMethods } = document
  const { headers, 'x-problems': shared = [] } = ofMethods[method] ?? {}
  const names = [...shared, ...(operation['x-problems'] ?? [])]
  const problems = names.flatMap((name) => {
    const problem = components['x-problems'][name]
    return problem === undefined ? [] : [{ ...problem, code: name.replace(/\.\d+$/, '') }]
  })
  return {
    ...operation,
    parameters: (operation.parameters ?? []).flatMap((one) => {
      const parameter = resolved(components.parameters, one)
      return parameter === undefined ? [] : [unfilled(parameter, components.schemas)]
    }),
    summary: operation.summary.replace(/\.$/, ''),
    responses: mapped(operation.responses, (response, status) => {
      if (status.startsWith('2') && !('$ref' in response))
        return { ...response, headers: { ...headers, ...response.headers } }
      const own = problems.filter((problem) => String(problem.status) === status)
      const whole = resolved<MediaTypes>(components.responses, response)
      return own.length === 0 || whole === undefined ? response : { ...whole, description: own.map(nameOf).join(' ') }
    }),
  }
}

/** Scalar sends the examples of optional filters, and a list between two examples of a time is empty. */
function unfilled(parameter: Parameter, schemas: ApiDocument['components']['schemas']): Parameter {
  if (parameter.in !== 'query' || parameter.required === true) return parameter
  const { example: _example, default: _default, ...schema } = resolved(schemas, parameter.schema) ?? {}
  return { ...parameter, schema }
}

/** Without a link: Scalar shows the text within a button. */
function nameOf({ code, title }: Refused & { readonly code: string }): string {
  return `\`${code}\`: ${title.replace(/\.$/, '')}.`
}
