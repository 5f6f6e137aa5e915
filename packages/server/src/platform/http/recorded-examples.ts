type Json = Readonly<Record<string, unknown>>

/** A call of an operation on a running service: the body of its request, and its successful response. */
export interface RecordedExample {
  readonly status: number
  readonly request?: unknown
  readonly response: unknown
}

/** A recorded call for each operation, by the id of the operation. */
export type RecordedExamples = Readonly<Record<string, RecordedExample>>

/** The examples of an API document. */
export interface Examples {
  /** Members of the media type of a request body. */
  ofRequest(operationId: string): Json
  /** Members of the media type of a response with this status. */
  ofResponse(operationId: string, status: number): Json
  /** Values that several operations have, so that each is written once. */
  readonly components: Json
}

/** Below this many characters a value is written where it is used, since a reference is hardly shorter. */
const sharedLengthMin = 100

export function examplesOf(recorded: RecordedExamples): Examples {
  const values = Object.entries(recorded).flatMap(([id, { request, response }]) => [
    { name: `${id}.request`, text: JSON.stringify(request) ?? '' },
    { name: id, text: JSON.stringify(response) ?? '' },
  ])
  const long = values.filter(({ text }) => text.length >= sharedLengthMin)
  const shared = [...Map.groupBy(long, ({ text }) => text).values()].filter((uses) => uses.length > 1)
  const names = new Map(shared.map(([first]) => [first?.text ?? '', first?.name ?? '']))
  const membersOf = (value: unknown): Json => {
    if (!isShown(value)) return {}
    const name = names.get(JSON.stringify(value))
    return { examples: { recorded: name === undefined ? { value } : { $ref: `#/components/examples/${name}` } } }
  }
  return {
    ofRequest: (id) => membersOf(recorded[id]?.request),
    ofResponse: (id, status) => (recorded[id]?.status === status ? membersOf(recorded[id].response) : {}),
    components: Object.fromEntries([...names].map(([text, name]) => [name, { value: JSON.parse(text) }])),
  }
}

const isShown = (value: unknown): boolean => value !== undefined && value !== ''
