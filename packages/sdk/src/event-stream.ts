/**
 * One event of a stream. `id` is the last id that was sent; an event without an id inherits it. `data` is empty if
 * only the id was sent.
 */
export interface StreamedEvent {
  readonly id: string
  readonly data: string
}

/** The maximum length of an event, in characters. Purser sends none that is longer. */
const eventLengthMax = 4_000_000

/**
 * Parses Server-Sent Events from text in chunks of any size (WHATWG HTML, section 9.2.6). Comments, `event` and
 * `retry` are ignored. An incomplete event at the end is dropped, because it will be sent again.
 */
export async function* readEvents(pieces: AsyncIterable<string>): AsyncGenerator<StreamedEvent> {
  const event = { id: '', data: '' }
  let reported = ''
  for await (const line of linesOf(pieces)) {
    if (line !== '') {
      take(event, line)
      continue
    }
    if (event.data !== '' || event.id !== reported) yield { id: event.id, data: event.data.slice(0, -1) }
    reported = event.id
    event.data = ''
  }
}

function take(event: { id: string; data: string }, line: string): void {
  const colon = line.indexOf(':')
  const [field, value] = colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')]
  if (field === 'data') event.data += `${value}\n`
  if (field === 'id' && !value.includes('\0')) event.id = value
  if (event.data.length > eventLengthMax) throw new RangeError('An event of the stream is too long.')
}

/** A line ends with CR LF, LF or CR. A CR at the end of a chunk may be the first half of CR LF. */
async function* linesOf(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = ''
  let isFirst = true
  for await (const piece of pieces) {
    rest += isFirst ? piece.replace(/^\uFEFF/, '') : piece
    isFirst &&= rest === ''
    const end = 1 + Math.max(rest.lastIndexOf('\n'), rest.slice(0, -1).lastIndexOf('\r'))
    if (rest.length - end > eventLengthMax) throw new RangeError('A line of the stream is too long.')
    if (end === 0) continue
    const whole = rest.slice(0, end)
    rest = rest.slice(end)
    yield* whole.split(/\r\n|\n|\r/).slice(0, -1)
  }
}
