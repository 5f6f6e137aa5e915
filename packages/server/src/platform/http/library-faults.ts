import { failPlatform, type Problem } from '../errors.ts'

/** The problems for errors of the HTTP library, by their codes. */
export const libraryFaults: Readonly<Record<string, Problem>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: failPlatform('payload-too-large'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: failPlatform('bad-request'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: failPlatform('unsupported-media-type'),
  FST_ERR_BAD_URL: failPlatform('not-found'),
  FST_ERR_MAX_PARAM_LENGTH: failPlatform('not-found'),
  FST_ERR_ASYNC_CONSTRAINT: failPlatform('bad-request'),
}
