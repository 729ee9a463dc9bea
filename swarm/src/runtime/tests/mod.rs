mod after_end;
mod line_reader;
mod lines;
mod queue;
