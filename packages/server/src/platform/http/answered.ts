import type { Caller } from '../ctx.ts'
import type { RequestId } from '../ids.ts'
import type { RawAnswer } from './call.ts'
import type { HttpOptions } from './http-options.ts'
import { problemCodeOf } from './problem.ts'

interface Request {
  readonly id: string
  readonly method: string
}

/** What reports the responses to requests whose caller is known. */
const reports = new WeakMap<object, (answer: RawAnswer) => void>()

/** Has the response to a request reported, now that its caller is known. `arrivedAt` is a time of `performance.now()`. */
export function reportAnswer(
  request: Request,
  { arrivedAt, ...known }: { readonly caller: Caller; readonly route: string; readonly arrivedAt: number },
  { onAnswer }: Pick<HttpOptions, 'onAnswer'>,
): void {
  if (onAnswer === undefined) return
  const { id, method } = request
  reports.set(request, (answer) =>
    onAnswer({
      ...known,
      requestId: id as RequestId,
      method,
      status: answer.status,
      durationMs: performance.now() - arrivedAt,
      code: problemCodeOf(answer),
    }),
  )
}

/** Reports a response that begins; once for each request. */
export function answered(request: Request, answer: RawAnswer): void {
  reports.get(request)?.(answer)
  reports.delete(request)
}
