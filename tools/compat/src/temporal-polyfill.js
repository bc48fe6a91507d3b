import { Intl, Temporal } from "temporal-polyfill";
import { cases } from "./temporal/cases.js";

export default () => cases(Temporal, Intl);
