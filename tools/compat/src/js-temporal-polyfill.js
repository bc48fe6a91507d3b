import { Intl, Temporal } from "@js-temporal/polyfill";
import { cases } from "./temporal/cases.js";

export default () => cases(Temporal, Intl);
